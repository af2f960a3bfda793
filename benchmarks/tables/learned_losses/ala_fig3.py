"""Fig. 3 of ALA: what a policy is rewarded by, and what that does to the training.

Source: Huang et al., ICML 2019, Fig. 3 and Sec. 6.4. Differs: the error after every
epoch is on observe, as the test split is read once; loss and error on the training
split are those of 5,000 of its images.
"""

from benchmarks.problems.images.method_networks import CE
from benchmarks.tables.network_methods import MethodTable
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

TABLE = MethodTable(
    experiment="ala-fig3",
    title="Fig. 3 of ALA (ICML 2019): four rewards",
    methods=(CE, "ala", "ala-loss", "ala-train", "ala-train-loss"),
    whole=True,
    notes=(
        "The paper reports that rewards by the training loss lower that loss, that all "
        "four rewards lower errors, and that the metric on observe lowers the test "
        "error most.",
    ),
)

EXPERIMENTS.register("ala-fig3")(experiment_of("ala-fig3", TABLE, takes_days=True))

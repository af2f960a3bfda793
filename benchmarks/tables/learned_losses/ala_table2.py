"""Table 2 of ALA: area under the precision-recall curve on CIFAR-10.

Source: Huang et al., ICML 2019, Table 2. MetricOpt on top of ALA is ours.
"""

from benchmarks.problems.images.method_networks import AUCPR, CE
from benchmarks.tables.network_methods import MethodTable
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

TABLE = MethodTable(
    experiment="ala-table2",
    title="Table 2 of ALA (ICML 2019): AUCPR on CIFAR-10",
    methods=(
        CE,
        "pairwise-aucroc",
        "aucpr",
        "ala",
        "ala-multi",
    ),
    on_top=(CE, "ala"),
    metric=AUCPR,
    label="AUCPR",
    paper_table="ALA Table 2",
    notes=(
        "Mean over the classes of the average precision of one class against the rest. "
        "Images are ranked by softmax probabilities, for the AUC and AUCPR losses by "
        "raw outputs.",
        "Networks of the AUC losses start from random weights, like those of ALA. In "
        "Table 2 of MetricOpt ResNet-32 goes on with these losses after cross-entropy.",
        "The paper takes the network of Eban et al., which could not be verified.",
    ),
)

EXPERIMENTS.register("ala-table2")(experiment_of("ala-table2", TABLE))

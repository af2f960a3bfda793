"""Table 5 of ALA: training and test error, and a second run with the policy.

Source: Huang et al., ICML 2019, Table 5.
"""

from benchmarks.problems.images.method_networks import CE
from benchmarks.tables.network_methods import MethodTable
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

TABLE = MethodTable(
    experiment="ala-table5",
    title="Table 5 of ALA (ICML 2019): a second run with the policy of the first",
    methods=(
        CE,
        "ala",
        "ala-reuse",
        "ala-finetune",
    ),
    paper_table="ALA Table 5",
    notes=(
        "Training errors of the paper: .0032 with cross-entropy, .0012 with ALA, .0014 "
        "and .0008 with a second run.",
        "The second run starts again from the initial weights and keeps the policy. "
        "Steps, queries and seconds of both are counted. Here one network trains under "
        "a controller; the paper's .0679 for a first run is that of ten networks.",
    ),
)

EXPERIMENTS.register("ala-table5")(experiment_of("ala-table5", TABLE))

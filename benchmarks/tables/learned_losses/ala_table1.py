"""Table 1 of ALA: classification error on CIFAR-10 by methods that adapt the loss.

Source: Huang et al., ICML 2019, Table 1, the column of ResNet-32. L2T (Fan et al.,
2018) is not built. MetricOpt on top of ALA is ours.
"""

from benchmarks.problems.images.method_networks import CE
from benchmarks.tables.network_methods import MethodTable
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

TABLE = MethodTable(
    experiment="ala-table1",
    title="Table 1 of ALA (ICML 2019): classification error on CIFAR-10",
    methods=(
        CE,
        "self-paced",
        "self-paced-global",
        "large-margin",
        "l2t-dlf",
        "ala-literal",
        "ala-noise",
        "ala-confusion",
        "ala",
        "ala-multi",
    ),
    on_top=(CE, "ala"),
    paper_table="ALA Table 1",
    rival="ala-noise",
    notes=(
        "Tier local: ALA decides every 20 steps instead of 200, which makes 25 "
        "decisions, 23 of them rewarded, each by one measurement. The policy takes 10 "
        "optimiser steps after each reward. 3 networks share a controller instead of "
        "10. The teacher of L2T-DLF learns from one student of 2 epochs.",
        "in the first replicate the controller of ALA lowers the parameters of nearly "
        "all pairs, which makes the loss one class against the rest. Its error is not "
        "shown to differ from that of a random matrix. The paper makes 320 decisions, "
        "one every 200 steps; here 25, one every 20.",
    ),
)

EXPERIMENTS.register("ala-table1")(experiment_of("ala-table1", TABLE))

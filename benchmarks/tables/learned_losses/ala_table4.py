"""Table 4 of ALA: a policy of CIFAR-10 trains a network on ImageNet.

Source: Huang et al., ICML 2019, Table 4, from which Table 4 of MetricOpt takes the row
of the policy. Data and networks are those of that table.
"""

from benchmarks.problems.photographs import tiers
from benchmarks.rows.photograph_networks import RMSPROP, ala, powersign
from benchmarks.tables.metricopt.table4 import METRIC, SHOWN, column
from benchmarks.tables.parts import NATURAL
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table


def ala_table4(tier: str) -> Table:
    """Return Table 4 of ALA at a tier."""
    problem = tiers.problem_at(tier, tiers.OWN)
    rows = (
        RMSPROP,
        powersign(tier),
        ala(tier, transferred=True),
        ala(tier, transferred=False),
    )
    place = Place(
        "natural",
        problem,
        METRIC,
        problem.name,
        rows=rows,
        asks="is not trained here: this table trains a few named methods only",
        also=SHOWN,
    )
    return table(
        [place],
        title="Table 4 of ALA (ICML 2019): accuracy on ImageNet",
        caption=f"{tiers.CAPTIONS[tier]}.",
        convention="ALA works towards the error rate, 1 - top-1, on observe.",
        blocks=NATURAL,
        columns=tuple(column(tier, problem, metric) for metric in SHOWN),
        paper_table="ALA Table 4",
        untouched_row=RMSPROP.name,
        query_budgets=(),
        notes=NOTES,
    )


NOTES = (
    "With ALA, networks begin with the weights that RMSProp alone begins with. All "
    "take as many steps, and the last state is kept. PowerSign-cd has another schedule "
    "of the rate, as in `table4`.",
    "Tier local: ALA decides every 20 steps instead of 200, 75 times; 73 of the "
    "decisions are rewarded, each by one measurement on 200 images.",
)

EXPERIMENTS.register("ala-table4")(experiment_of("ala-table4", ala_table4))

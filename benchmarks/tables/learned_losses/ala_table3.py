"""Table 3 of ALA: Recall@k of image retrieval on Stanford Online Products.

Source: Huang et al., ICML 2019, Table 3. The second set of functions and the control
without a policy are ours. BIER, HTL and ABE-8, ensembles and another loss, are not
built.
"""

from benchmarks.problems.retrieval import tiers
from benchmarks.problems.retrieval.method_networks import SIZES, MethodRetrieval
from benchmarks.report.columns import Column
from benchmarks.rows.embedding_methods import LABELS, PAPER
from benchmarks.runs.spec import Unit
from benchmarks.tables.embedding_methods import FIELDS, NOTES, place
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Table, experiment_of, table

ALSO = Unit("map@r")
NOT_SOP = "other data and another network than the paper's"


def ala_table3(tier: str) -> Table:
    """Return Table 3 of ALA at a tier."""
    problem = MethodRetrieval.of(tier)
    recalls = {Unit(f"recall@{k}"): f"R@{k}" for k in SIZES[tier].ranks}
    return table(
        [place(problem, tuple(LABELS), (*recalls, ALSO))],
        title="Table 3 of ALA (ICML 2019): Recall@k of image retrieval",
        caption=_described(tier),
        convention=(
            "Every image of the test is a query among all others; no class of the "
            "test is one of training or observe."
        ),
        columns=tuple(
            Column(
                f"{problem.name}/{metric.label}",
                label,
                metric,
                runs=problem.name,
                paper_column=f"sop/{metric.label}",
                not_comparable="" if tier == "paper" else NOT_SOP,
            )
            for metric, label in {
                **recalls,
                problem.metric: "mean R@k",
                ALSO: "mAP@R",
            }.items()
        ),
        paper_table=PAPER,
        notes=(*OWN_NOTES, *NOTES),
        **FIELDS,
    )


def _described(tier: str) -> str:
    if tier != "local":
        return tiers.LABELS[tier]
    usual, own = tiers.PROBLEMS[tier].side, SIZES[tier].of["photographs"].problem.side
    return tiers.LABELS[tier].replace(f"{usual} x {usual}", f"{own} x {own}")


OWN_NOTES = (
    "ALA works towards the mean of Recall@k on observe, k = 1, 10, 100 and 1,000, as "
    "far as k is less than the gallery.",
    "The other problem, whose policy is taken over, is the faces of `ala-faces`.",
)

EXPERIMENTS.register("ala-table3")(experiment_of("ala-table3", ala_table3))

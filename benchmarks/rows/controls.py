"""Controls: the untouched network, fine-tuning with the loss alone, and searches."""

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import LOSS_ONLY, UNTOUCHED, Row, Run, always, register
from benchmarks.runs.spec import Arm, Unit


def method(name: str, **settings: object) -> Arm:
    """Return an arm that chooses phi by a registered method."""
    return Arm("method", name, settings)


def loss_only(problem: Problem, metric: Unit) -> Run:
    """Return fine-tuning with the loss alone."""
    return Run(method("loss-only"), meta_tests=problem.size.meta_tests)


def _dense(problem: Problem, metric: Unit) -> Run:
    size = problem.size
    return Run(method("loss-only-dense"), size.steps, size.meta_tests)


def finetuned(name: str, label: str, **more: object) -> Row:
    """Return a row of fine-tuning runs: they start alike, and see loss gradients."""
    known = {"same_starts": True, "sees": "loss gradients", "compared": False}
    return Row(name, label, **{**known, **more})  # type: ignore[arg-type]


def _search(name: str, label: str, sees: str) -> Row:
    def run(problem: Problem, metric: Unit) -> Run:
        size = problem.size
        arm = method(name, **problem.search_settings)
        return Run(arm, size.queries, size.search_tests)

    base = (LOSS_ONLY, UNTOUCHED)
    return Row(name, label, run=run, base=base, sees=sees, is_brief=True)


CROSS_ENTROPY = Row(
    "cross-entropy",
    "CE, untouched (phi = 0)",
    "untouched",
    run=always(Run(method("untouched"))),
    paper={name: "ce" for name in ("Table 1", "Table 2", "Table 3")},
    compared=False,
    is_primary=True,
    is_brief=True,
)
"""The untouched network; tables whose base loss is another one rename it."""
LOSS_ONLY_ROW = finetuned(
    "loss-only",
    "CE fine-tune, last step",
    run=loss_only,
    is_primary=True,
    is_brief=True,
)
DENSE = finetuned(
    "loss-only-dense",
    "CE fine-tune, dense eval",
    run=_dense,
    base=(LOSS_ONLY,),
    paper={"Table 1": "dense", "Table 2": "dense"},
    is_brief=True,
)
RANDOM_SEARCH = _search("random-search", "random search", "metric values")
CMA_ES = _search("cma-es", "CMA-ES", "metric values")
GUIDED_CMA = _search("guided-cma", "guided CMA-ES (ours)", "loss gradients")
SEARCHES = (RANDOM_SEARCH, CMA_ES, GUIDED_CMA)

register(CROSS_ENTROPY, LOSS_ONLY_ROW, DENSE, *SEARCHES)

"""Searches whose proposals need evidence of a gain, ours."""

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import UNTOUCHED, Fill, Run, family, register, small_phi
from benchmarks.rows.rivals import QUERIES
from benchmarks.runs.spec import Arm, Unit


def _search(name: str) -> Fill:
    def run(problem: Problem, metric: Unit) -> Run:
        arm = Arm("no-harm", name, problem.search_settings)
        return Run(arm, min(problem.size.queries, QUERIES), offsets=True)

    return run


def _metricopt(problem: Problem, metric: Unit) -> Run:
    size = problem.size
    recipe = {**size.recipe("metricopt"), "block": 16}
    arm = Arm("no-harm", "metricopt", {"recipe": recipe})
    queries, tests = min(size.queries, 500), min(size.meta_tests, 3)
    return Run(arm, queries, tests, offsets=True)


_row = family("no harm", sees="outputs and labels", base=(UNTOUCHED,), compared=False)
CMA_ES_NO_HARM = _row(
    "cma-es-no-harm",
    "CMA-ES + no harm (ours)",
    _search("cma-es"),
    note="phi is cross-fitted from what CMA-ES queried, and kept only if its gain "
    "shows",
    is_brief=True,
)
GUIDED_CMA_NO_HARM = _row(
    "guided-cma-no-harm", "guided CMA-ES + no harm (ours)", _search("guided-cma")
)
METRICOPT_NO_HARM = _row(
    "metricopt-no-harm",
    "MetricOpt + no harm (ours)",
    _metricopt,
    needs=(small_phi("Table 3 shows what the check for harm makes of MetricOpt"),),
)

register(CMA_ES_NO_HARM, GUIDED_CMA_NO_HARM, METRICOPT_NO_HARM)

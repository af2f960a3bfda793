"""MetricOpt as published, as it works here, and with fewer queries.

Source: Huang et al., CVPR 2021, Alg. 1.
"""

from typing import Any

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import (
    LOSS_ONLY,
    Fill,
    Row,
    Run,
    queries,
    register,
    small_phi,
)
from benchmarks.rows.controls import finetuned, method
from benchmarks.runs.spec import Unit

ONE_BUDGET = "where d exceeds 32, 500 queries stand for all smaller budgets"


def metricopt(
    name: str = "metricopt",
    *,
    diagnose: bool = True,
    recipe: dict[str, Any] | None = None,
    **chosen: Any,
) -> Fill:
    """Return what a form of MetricOpt does.

    Args:
        name: name of the method.
        diagnose: whether its value function is checked on held-out trajectories.
        recipe: changes to the recipe of the problem.
        **chosen: further settings of the method.
    """

    def run(problem: Problem, metric: Unit) -> Run:
        size = problem.size
        learned = size.recipe(name) | (recipe or {})
        return Run(
            method(name, recipe=learned, **size.step_lengths(name), **chosen),
            size.metricopt_queries,
            size.meta_tests,
            diagnose=diagnose,
            value_functions=size.value_functions,
        )

    return run


def _with_queries(name: str, budget: int, *, block: int) -> Row:
    """Return MetricOpt with another budget, and shorter blocks where d is small."""

    def run(problem: Problem, metric: Unit) -> Run:
        recipe = {"block": block} if problem.is_small else {}
        return metricopt(diagnose=False, recipe=recipe)(problem, metric)

    one = () if budget == 500 else (small_phi(ONE_BUDGET),)
    return finetuned(
        name,
        f"MetricOpt, {budget} queries",
        family="metricopt",
        run=run,
        base=(LOSS_ONLY,),
        variant_of="metricopt",
        budget=budget,
        needs=(*one, queries(budget)),
        compared=True,
    ).running(queries=budget)


LITERAL = finetuned(
    "metricopt-literal",
    "MetricOpt, literal",
    family="metricopt",
    run=metricopt("metricopt-literal"),
    base=(LOSS_ONLY,),
    note="Algorithm 1 as published: raw targets, one task and one step per update",
)
METRICOPT = finetuned(
    "metricopt",
    "MetricOpt (SGD)",
    family="metricopt",
    run=metricopt(),
    base=(LOSS_ONLY,),
    paper={
        "Table 1": "metricopt-sgd",
        "Table 2": "metricopt-sgd",
        "Table 3": "metricopt",
        "Table 4": "metricopt-nasnet",
        "Table 5": "+metricopt",
        "Table 6": "+metricopt",
    },
    compared=True,
    is_primary=True,
    is_brief=True,
    is_pictured=True,
)
ADAM = finetuned(
    "metricopt-adam",
    "MetricOpt (Adam)",
    family="metricopt",
    run=metricopt(diagnose=False, optimizer="adam"),
    base=(LOSS_ONLY,),
)
MIRROR = finetuned(
    "metricopt-mirror",
    "MetricOpt, learned geometry",
    family="metricopt",
    run=metricopt("metricopt-mirror", diagnose=False),
    base=(LOSS_ONLY,),
    note="guided steps in the dual parameters of a mirror map. It is meta-trained with "
    "the value function in place of the metric, and so without a query",
    short={"geometry": {"tasks": 16}},
)
WITH_500_QUERIES = _with_queries("metricopt-q500", 500, block=16)
WITH_FEWER_QUERIES = (
    _with_queries("metricopt-q50", 50, block=8),
    _with_queries("metricopt-q150", 150, block=8),
    WITH_500_QUERIES,
    _with_queries("metricopt-q1500", 1_500, block=32),
)

register(LITERAL, METRICOPT, ADAM, MIRROR, *WITH_FEWER_QUERIES)

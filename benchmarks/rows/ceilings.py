"""Ceilings: what knows the formula of the metric, and oracles that search for long."""

from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import (
    UNTOUCHED,
    Fill,
    Run,
    always,
    classes,
    family,
    large_phi,
    only,
    register,
)
from benchmarks.rows.controls import method
from benchmarks.rows.on_outputs import QUERIES
from benchmarks.runs.spec import Arm, Unit

COUNTED = ("mcr", "jaccard", "f1", "f-macro", "g-mean", "worst-class-error")
"""Metrics whose formula the soft ceiling knows."""
LONG_ENOUGH = "where d is small, CMA-ES with all its queries is a long search already"


def _soft_metric(problem: Problem, metric: Unit) -> Run:
    return Run(method("white-box", formula=metric.label), offsets=True)


def _oracle(kind: str) -> Fill:
    def run(problem: Problem, metric: Unit) -> Run:
        search = Arm(kind, "cma-es", problem.search_settings)
        return Run(search, problem.size.oracle)

    return run


_row = family("ceilings", compared=False)
DICTIONARY = _row(
    "dictionary",
    "ceiling: dictionary",
    always(Run(method("dictionary"), QUERIES, offsets=True)),
    base=(UNTOUCHED,),
    sees="formula",
    note="recognises a known metric by two or three queries and optimises its formula",
    needs=(classes,),
)
SOFT_METRIC = _row(
    "white-box",
    "ceiling: soft metric",
    _soft_metric,
    base=(UNTOUCHED,),
    sees="formula",
    needs=(classes, only(*COUNTED)),
    short={"rates": [0.1], "steps": 50},
)
ORACLE_ON_OBSERVE = _row(
    "oracle-observe",
    "long CMA-ES",
    _oracle("method"),
    sees="metric values",
    note="makes at least as many queries on observe as 50 dense fine-tunings",
    needs=(large_phi(LONG_ENOUGH),),
)
ORACLE_ON_TEST = _row(
    "oracle-test",
    "oracle: CMA-ES on test itself",
    _oracle("oracle"),
    sees="test",
    note="no result: one search on the test split, to show what the adapter can "
    "express at least",
    needs=(large_phi(LONG_ENOUGH),),
    is_brief=True,
)

register(DICTIONARY, SOFT_METRIC, ORACLE_ON_OBSERVE, ORACLE_ON_TEST)

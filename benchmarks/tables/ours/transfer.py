"""Transfer of value functions between networks, and what it saves in queries. Ours.

A value function of statistics, and one of phi, each learned on one network and used on
another. The networks see the same classes; they differ in architecture, or in the
images they were trained on.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from benchmarks.problems.images import tiers as image_tiers
from benchmarks.problems.images.tiers import (
    CIFAR10,
    DIGITS,
    Images,
    TrainedNetwork,
    images,
)
from benchmarks.problems.photographs.tiers import ELSEWHERE, problem_at
from benchmarks.problems.pretrained.settings import FilmSettings
from benchmarks.problems.problem import Problem
from benchmarks.report.layout import Block
from benchmarks.rows.contract import LOSS_ONLY, UNTOUCHED, Row, Run
from benchmarks.rows.controls import CROSS_ENTROPY, LOSS_ONLY_ROW, finetuned
from benchmarks.rows.metricopt import METRICOPT, metricopt
from benchmarks.rows.on_outputs import OURS, QUERIES, SHORT, ours, with_queries
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

LABELS = {"worst-class-error": "worst class", "f-macro": "macro F"}
METRICS = {"paper": tuple(LABELS), "local": tuple(LABELS), "smoke": ("f-macro",)}
"""Metrics by tier."""
TOLD = 5
"""Queries of a search that was told what another learned."""
SIZE_OF_PHI = 128
SIZES = {
    tier: replace(size, value_functions=1, seeds=1, meta_tests=meta_tests)
    for (tier, size), meta_tests in zip(
        image_tiers.SIZES.items(), (10, 3, 2), strict=True
    )
}
SIZES["local"] = replace(SIZES["local"], tasks=160, replicates=3)

OWN = (
    CROSS_ENTROPY,
    LOSS_ONLY_ROW,
    with_queries("metricopt-outputs-q5", TOLD),
    with_queries("metricopt-outputs-q10", 10),
    replace(OURS, label="MetricOpt on outputs"),
    replace(METRICOPT, compared=False),
)
"""Rows that are told nothing."""


def networks(tier: str) -> dict[str, tuple[str, Problem]]:
    """Return the networks of a tier with their labels, by name."""
    size = SIZES[tier]

    def on(problem: Images, network: str) -> Images:
        return problem.at(
            tier,
            size=size,
            network=TrainedNetwork(network),
            adapter=FilmSettings("shared", size=SIZE_OF_PHI),
            finetuning=size,
        )

    if tier == "smoke":
        tail = images("tail", "digits", imbalance=4)
        return {
            "digit-net": ("digit net", on(DIGITS, "digit-net")),
            "tail": ("digit net, long tail", on(tail, "digit-net")),
        }
    tail = images("tail", "cifar10", imbalance=100)
    nasnet = problem_at(tier, ELSEWHERE, size=size, phi_size=SIZE_OF_PHI)
    return {
        "resnet32": ("ResNet-32", on(CIFAR10, "resnet32")),
        "small": ("small network", on(CIFAR10, "small")),
        "nasnet-a": ("NASNet-A", nasnet),
        "tail": ("ResNet-32, long tail", on(tail, "resnet32")),
    }


def _told_run(problem: Problem, metric: Unit) -> Run:
    found = ours(TOLD)(problem, metric)
    # What is learned elsewhere takes the whole number of queries.
    return replace(found, arm=replace(found.arm, learning=QUERIES))


def _statistics_from(source: str, label: str, other: Problem) -> Row:
    """Return MetricOpt on outputs that knows the queries of another network."""
    return Row(
        f"statistics-{source}",
        f"f of statistics from {label}, {TOLD} queries",
        "on outputs",
        run=_told_run,
        base=(UNTOUCHED,),
        sees="outputs and labels",
        learns_on=other,
        short=SHORT,
    )


def _phi_from(source: str, label: str, other: Problem) -> Row:
    """Return MetricOpt with the value function of phi of another network."""
    return finetuned(
        f"phi-{source}",
        f"f of phi from {label}",
        family="on outputs",
        run=metricopt(diagnose=False),
        base=(LOSS_ONLY,),
        learns_on=other,
        is_primary=True,
    )


def _told(known: Mapping[str, tuple[str, Problem]], name: str) -> list[Row]:
    """Return the rows on a network that know the queries of all others.

    Args:
        known: all networks.
        name: name of the network; empty for the rows of all sources.
    """
    return [
        row(source, *known[source])
        for source in known
        if source != name
        for row in (_statistics_from, _phi_from)
    ]


def _place(known: Mapping[str, tuple[str, Problem]], name: str, metric: str) -> Place:
    return Place(
        name,
        known[name][1],
        Unit(metric),
        metric,
        rows=(*OWN, *_told(known, name)),
        asks="this table asks what a value function of elsewhere saves",
    )


def transfer(tier: str) -> Table:
    """Return the table of transfers at a tier."""
    size, known = SIZES[tier], networks(tier)
    digits = tier == "smoke"
    data = DIGITS if digits else CIFAR10
    return table(
        [_place(known, *part) for part in product(known, METRICS[tier])],
        order=(*OWN, *_told(known, "")),
        title="Value functions learned on one network, used on another",
        caption=(
            f"Networks for {'digits' if digits else 'CIFAR-10'}; FiLM on the last "
            f"feature map, d = {SIZE_OF_PHI}, one generator for all networks, "
            f"T = {size.steps}, K = {size.observations}, {size.tasks} tasks."
        ),
        convention=(
            "Queries on the network itself are counted; those that a value function "
            "was learned with elsewhere are not: 15 for statistics, all of "
            "meta-training for phi."
        ),
        blocks=tuple(
            Block(name, f"used on: {label}") for name, (label, _) in known.items()
        ),
        columns=tuple(
            column_of(data, Unit(name), LABELS[name], name=name)
            for name in METRICS[tier]
        ),
        loss_only_row="loss-only",
        untouched_row="cross-entropy",
        query_budgets=(TOLD, 10, QUERIES),
        notes=NOTES,
    )


NOTES = (
    "A value function of statistics needs the same classes on both networks, and no "
    "common adapter. One of phi needs the same d and the same generator: the first "
    "channels of the last feature maps take the same rows of it.",
    "A search that was told something predicts from its first query on, and forgets "
    "what it was told if three predictions in a row do not come true.",
    "Three queries alone, or nine, are the least possible: a search trusts its value "
    "function once three predictions have come true, and alone it first makes six "
    "queries to have one. Five queries of a search that was told something are tested "
    "against the untouched network, not against ten or 15 of a search alone.",
    "A value function of phi that hardly ranks phi on its own network, see `Value "
    "functions`, has nothing to hand on.",
    "Within a replicate all networks but NASNet-A observe the same 5,000 images.",
)

EXPERIMENTS.register("transfer")(experiment_of("transfer", transfer))

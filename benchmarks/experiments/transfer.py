"""Transfer of value functions between networks, and what it saves in queries. Ours.

A value function of statistics, and one of phi, each learned on one network and used on
another. The networks see the same classes; they differ in architecture, or in the
images they were trained on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.image_arms import metricopt
from benchmarks.experiments.shared.plans import Part, Plan, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import (
    CIFAR10,
    DIGITS,
    NamedProblem,
    image_problem,
)
from benchmarks.problems.film_settings import FilmSettings
from benchmarks.problems.images import tiers as images
from benchmarks.problems.images.settings import ImageProblem
from benchmarks.problems.images.tiers import (
    ImageSize,
    TrainedNetwork,
    image_pipeline,
)
from benchmarks.problems.photographs import tiers as photographs
from benchmarks.problems.photographs.tiers import ELSEWHERE
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, Row, TableLayout, finetuned
from benchmarks.runs.spec import RunSpec, Unit

LABELS = {"worst-class-error": "worst class", "f-macro": "macro F"}
METRICS = {"paper": tuple(LABELS), "local": tuple(LABELS), "smoke": ("f-macro",)}
"""By tier."""
BUDGETS = (5, 10)
"""Of MetricOpt on outputs, besides its own."""
TOLD = BUDGETS[0]
"""Queries of a search that was told what another learned."""
SIZE_OF_PHI = 128
UNTOUCHED, BASE = "cross-entropy", "loss-only"
SIZES = {
    tier: replace(size, value_functions=1, seeds=1, meta_tests=meta_tests)
    for (tier, size), meta_tests in zip(images.SIZES.items(), (10, 3, 2), strict=True)
}
SIZES["local"] = replace(SIZES["local"], tasks=160, replicates=3)


@dataclass(frozen=True)
class Place:
    """A network that value functions are learned or used on.

    Attributes:
        label: what tables call it.
        alone: its pipeline, without output offsets.
        beside: the same with output offsets.
    """

    label: str
    alone: Unit
    beside: Unit


def places(tier: str, offline: bool | None) -> dict[str, Place]:
    """Return the networks of a tier by name."""
    size = SIZES[tier]
    if tier == "smoke":
        tail = image_problem("tail", "digits", imbalance=4)
        return {
            "digit-net": _place("digit net", "digit-net", DIGITS, tier, offline),
            "tail": _place("digit net, long tail", "digit-net", tail, tier, offline),
        }
    tail = image_problem("tail", "cifar10", imbalance=100)
    nasnet = replace(photographs.NETWORKS[tier][ELSEWHERE], size=SIZE_OF_PHI)
    alone, beside = (
        nasnet.pipeline(tier, offsets=offsets, batch_size=size.batch_size)
        for offsets in (False, True)
    )
    return {
        "resnet32": _place("ResNet-32", "resnet32", CIFAR10, tier, offline),
        "small": _place("small network", "small", CIFAR10, tier, offline),
        "nasnet-a": Place("NASNet-A", alone, beside),
        "tail": _place("ResNet-32, long tail", "resnet32", tail, tier, offline),
    }


def _place(
    label: str,
    network: str,
    problem: NamedProblem[ImageProblem],
    tier: str,
    offline: bool | None,
) -> Place:
    data, trained = problem.here(offline), TrainedNetwork(network)
    alone, beside = (
        image_pipeline(
            tier,
            data,
            trained,
            adapter=FilmSettings("shared", size=SIZE_OF_PHI, offsets=offsets),
            size=SIZES[tier],
        )
        for offsets in (False, True)
    )
    return Place(label, alone, beside)


def plans(name: str, known: Mapping[str, Place], size: ImageSize) -> dict[str, Plan]:
    """Return how the rows on one network are filled, by row.

    Args:
        name: of the network.
        known: all networks by name; every other one is a source.
        size: of the tier.
    """
    own, budgets = metricopt(size), (*BUDGETS, outputs.QUERIES)
    found = {UNTOUCHED: arms.untouched(), BASE: arms.loss_only(size)}
    found |= {_budgeted(outputs.OURS, q): outputs.ours(q) for q in budgets}
    found["metricopt"] = own
    for source, place in known.items():
        if source == name:
            continue
        plan = outputs.ours(TOLD)
        # What is learned there takes the whole number of queries.
        arm = replace(plan.arm, source=place.beside, learning=outputs.QUERIES)
        found[f"statistics-{source}"] = replace(plan, arm=arm)
        arm = replace(own.arm, source=place.alone)
        found[f"phi-{source}"] = replace(own, arm=arm, diagnose=False)
    return found


def _budgeted(arm: str, queries: int) -> str:
    """Return the name of a row, which has no budget in it if it is the greatest one."""
    return arm if queries == outputs.QUERIES else f"{arm}-q{queries}"


def _at(queries: int) -> str:
    return "" if queries == outputs.QUERIES else f", {queries} queries"


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, known = SIZES[tier], places(tier, offline)
    parts = [
        Part(
            name,
            metric,
            metric,
            size.steps,
            on_pipeline(
                place.alone, plans(name, known, size), with_offsets=place.beside
            ),
        )
        for name, place in known.items()
        for metric in METRICS[tier]
    ]
    count = replicates or size.replicates
    return table_specs("transfer", tier, parts, replicates=count)


def rows(known: Mapping[str, Place]) -> tuple[Row, ...]:
    """Return all rows, those of every source among them."""
    found = [
        Row(UNTOUCHED, "CE, untouched (phi = 0)"),
        finetuned(BASE, "CE fine-tune, last step"),
        *(
            Row(
                _budgeted(outputs.OURS, queries),
                f"MetricOpt on outputs{_at(queries)}",
                UNTOUCHED,
                sees=outputs.SCORES,
            )
            for queries in (*BUDGETS, outputs.QUERIES)
        ),
        finetuned("metricopt", "MetricOpt (SGD)", BASE),
    ]
    for source, place in known.items():
        told = Row(
            f"statistics-{source}",
            f"f of statistics from {place.label}, {TOLD} queries",
            UNTOUCHED,
            sees=outputs.SCORES,
        )
        found += [
            told,
            finetuned(f"phi-{source}", f"f of phi from {place.label}", BASE),
        ]
    return tuple(found)


def layout(tier: str) -> TableLayout:
    """Return what the table looks like at a tier."""
    size, known = SIZES[tier], places(tier, None)
    data = (DIGITS if tier == "smoke" else CIFAR10).problem
    return TableLayout(
        experiment="transfer",
        title="Value functions learned on one network, used on another",
        caption=(
            f"Networks for {'digits' if tier == 'smoke' else 'CIFAR-10'}; FiLM on the "
            f"last feature map, d = {SIZE_OF_PHI}, one generator for all networks, "
            f"T = {size.steps}, K = {size.observations}, {size.tasks} tasks."
        ),
        convention=(
            "Queries on the network itself are counted; those that a value function "
            "was learned with elsewhere are not: 15 for statistics, all of "
            "meta-training for phi."
        ),
        blocks=tuple(
            Block(name, f"used on: {place.label}") for name, place in known.items()
        ),
        rows=rows(known),
        columns=tuple(
            Column(name, LABELS[name], Unit(name), test_per_train=data.test_per_train)
            for name in METRICS[tier]
        ),
        loss_only_row=BASE,
        untouched_row=UNTOUCHED,
        query_budgets=(*BUDGETS, outputs.QUERIES),
        query_arms=(outputs.OURS, *(f"statistics-{name}" for name in known)),
        network_of=network_of,
        notes=NOTES,
    )


def network_of(spec: RunSpec) -> str:
    """Return a readable identity of the pre-trained network of a run."""
    of = images if spec.pipeline.name == "images" else photographs
    return of.network_of(spec)


NOTES = (
    "A value function of statistics needs the same classes on both networks, and no "
    "common adapter. One of phi needs the same d and the same generator: the first "
    "channels of the last feature maps take the same rows of it.",
    "A search that was told something predicts from its first query on, and forgets "
    "what it was told if three predictions in a row do not come true.",
)

EXPERIMENTS.register("transfer")(Experiment("transfer", layout, specs))

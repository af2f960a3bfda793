"""Black boxes that no statistic was made for, on CIFAR-10: identified or not? Ours.

Two released networks, each searched several times. See `unseen` for what counts.
"""

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.image_arms import DEVIATION
from benchmarks.experiments.shared.images import (
    CONVENTION,
    FILM_AND_OFFSETS,
    SIZES,
    TrainedNetwork,
    image_pipeline,
    network_of,
)
from benchmarks.experiments.shared.plans import Part, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import CIFAR10, DIGITS
from benchmarks.experiments.shared.unseen_metrics import (
    BUDGETS,
    CAPTION,
    NOTES,
    QUERY_ARMS,
    ROWS,
    black_boxes,
    columns,
    plans,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.spec import RunSpec

PROBLEMS = {"paper": CIFAR10, "local": CIFAR10, "smoke": DIGITS}
NETWORKS = {"resnet32": "ResNet-32", "small": "small network"}
SMOKE_NETWORKS = {"digit-net": "digits"}
TESTS = 3
"""Searches of a network, which the spread is over."""


def networks(tier: str) -> dict[str, str]:
    """Return the networks of a tier, one block each, with their labels."""
    return SMOKE_NETWORKS if tier == "smoke" else NETWORKS


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, problem, parts = SIZES[tier], PROBLEMS[tier], []
    data = problem.here(offline)
    filled = plans(tier, 1 if tier == "smoke" else TESTS, deviation=DEVIATION)
    for network in networks(tier):
        trained = TrainedNetwork(network)
        pipeline = image_pipeline(tier, data, trained, adapter=FILM_AND_OFFSETS)
        rows = on_pipeline(pipeline, filled, with_offsets=pipeline)
        parts += [
            Part(network, f"{problem.name}/{box.name}", box.unit, size.steps, rows)
            for box in black_boxes(tier, classes=10)
        ]
    count = replicates or size.replicates
    return table_specs("unseen-images", tier, parts, replicates=count)


def layout(tier: str) -> TableLayout:
    """Return what the table looks like at a tier."""
    return TableLayout(
        experiment="unseen-images",
        title="Black boxes that no statistic was made for, on images",
        caption=(
            "FiLM on the last batch norm and an offset for every output, "
            f"T = {SIZES[tier].steps}. {CAPTION}"
        ),
        convention=CONVENTION,
        blocks=tuple(Block(*item) for item in networks(tier).items()),
        rows=ROWS,
        columns=columns(PROBLEMS[tier], black_boxes(tier, classes=10)),
        query_budgets=BUDGETS,
        query_arms=QUERY_ARMS,
        network_of=network_of,
        notes=(
            *NOTES,
            f"There is one network of each kind, searched {TESTS} times.",
            f"First samples of searches have a standard deviation of {DEVIATION}, "
            "because d exceeds 100.",
        ),
    )


EXPERIMENTS.register("unseen-images")(Experiment("unseen-images", layout, specs))

"""Black boxes that no statistic was made for, on CIFAR-10: identified or not? Ours.

Two released networks, each searched several times. See `unseen` for what counts.
"""

from dataclasses import replace
from itertools import product

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.image_arms import DEVIATION
from benchmarks.experiments.shared.plans import Part, Plan, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import CIFAR10, DIGITS
from benchmarks.experiments.shared.unseen_metrics import (
    BUDGETS,
    CAPTION,
    FURTHER_COSTS,
    NOTES,
    PATIENT,
    PATIENT_BOXES,
    QUERY_ARMS,
    ROWS,
    BlackBox,
    black_boxes,
    columns,
    plans,
)
from benchmarks.problems.images.tiers import (
    CONVENTION,
    FILM_AND_OFFSETS,
    SIZES,
    TrainedNetwork,
    image_pipeline,
    network_of,
)
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.spec import RunSpec

PROBLEMS = {"paper": CIFAR10, "local": CIFAR10, "smoke": DIGITS}
NETWORKS = {"resnet32": "ResNet-32", "small": "small network"}
SMOKE_NETWORKS = {"digit-net": "digits"}
TESTS = {"paper": 3, "local": 2, "smoke": 1}
"""Searches of a network, which the spread is over."""
SLOW = ("random-search", "guided-cma", PATIENT)
"""Rows that tier local lacks on the small network and for further random costs."""


def networks(tier: str) -> dict[str, str]:
    """Return the networks of a tier, one block each, with their labels."""
    return SMOKE_NETWORKS if tier == "smoke" else NETWORKS


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, problem, parts = SIZES[tier], PROBLEMS[tier], []
    data = problem.here(offline)
    for network, box in product(networks(tier), black_boxes(tier, classes=10)):
        trained = TrainedNetwork(network)
        pipeline = image_pipeline(tier, data, trained, adapter=FILM_AND_OFFSETS)
        filled = column_plans(tier, network, box)
        if filled:
            rows = on_pipeline(pipeline, filled, with_offsets=pipeline)
            column = f"{problem.name}/{box.name}"
            parts.append(Part(network, column, box.unit, size.steps, rows))
    count = replicates or size.replicates
    return table_specs("unseen-images", tier, parts, replicates=count)


def column_plans(tier: str, network: str, box: BlackBox) -> dict[str, Plan]:
    """Return how the rows of a column are filled; empty for a column left out."""
    found = plans(tier, TESTS[tier], deviation=DEVIATION)
    if PATIENT in found:
        found[PATIENT] = replace(found[PATIENT], meta_tests=1)
    if tier != "local":
        return found
    if network == "small" and box in FURTHER_COSTS:
        return {}
    if network == "small" or box in FURTHER_COSTS:
        left_out = SLOW
    else:
        left_out = () if box.name in PATIENT_BOXES else (PATIENT,)
    return {row: plan for row, plan in found.items() if row not in left_out}


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
        untouched_row="cross-entropy",
        query_budgets=BUDGETS,
        query_arms=QUERY_ARMS,
        network_of=network_of,
        notes=(
            *NOTES,
            f"There is one network of each kind, searched {TESTS[tier]} times, with "
            "50 queries once.",
            "Tier local, to save time: random search and guided CMA-ES are left out on "
            "the small network and for random costs 1 to 4, which the small network "
            "lacks altogether. 50 queries are made on ResNet-32 alone, and not for "
            "metrics of the confusion matrix.",
            f"First samples of searches have a standard deviation of {DEVIATION}, "
            "because d exceeds 100.",
        ),
    )


EXPERIMENTS.register("unseen-images")(Experiment("unseen-images", layout, specs))

"""Black boxes that no statistic was made for, on CIFAR-10: identified or not? Ours.

Two released networks, each searched several times. See `unseen` for what counts.
"""

from dataclasses import replace
from itertools import product

from benchmarks.problems.images import tiers
from benchmarks.problems.problem import DEVIATION
from benchmarks.report.layout import Block
from benchmarks.rows.contract import Row
from benchmarks.tables.ours import black_boxes
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

NETWORKS = {"resnet32": "ResNet-32", "small": "small network"}
SMOKE_NETWORKS = {"digit-net": "digits"}
TESTS = {"paper": 3, "local": 2, "smoke": 1}
"""Searches of a network, which the spread is over."""
SLOW = ("random-search", "guided-cma", black_boxes.PATIENT.name)
"""Rows that tier local lacks on the small network and for further random costs."""


def unseen_images(tier: str) -> Table:
    """Return the table of black boxes on images at a tier."""
    networks = SMOKE_NETWORKS if tier == "smoke" else NETWORKS
    size, tests = tiers.SIZES[tier], TESTS[tier]
    sized = replace(
        size, search_queries=black_boxes.QUERIES[tier], search_tests=tests, seeds=tests
    )
    problem = tiers.cifar10(tier, size=sized, adapter=tiers.FILM_AND_OFFSETS)
    boxes = black_boxes.black_boxes(tier, classes=10)
    places = (
        Place(
            network,
            replace(problem, network=tiers.TrainedNetwork(network)),
            box.unit,
            f"{problem.name}/{box.name}",
            rows=shown(tier, network, box),
            asks=black_boxes.ASKS,
        )
        for network, box in product(networks, boxes)
    )
    return table(
        [place for place in places if place.rows],
        title="Black boxes that no statistic was made for, on images",
        caption=(
            "FiLM on the last batch norm and an offset for every output, "
            f"T = {size.steps}. {black_boxes.CAPTION}"
        ),
        convention=tiers.CONVENTION,
        blocks=tuple(Block(*item) for item in networks.items()),
        columns=black_boxes.columns(problem, boxes),
        untouched_row="cross-entropy",
        query_budgets=black_boxes.BUDGETS,
        notes=(*black_boxes.NOTES, *_notes(tests)),
    )


def _notes(tests: int) -> tuple[str, ...]:
    """Return what is told of these networks, each searched so many times."""
    return (
        f"There is one network of each kind, searched {tests} times, with 50 "
        "queries once.",
        "Tier local, to save time: random search and guided CMA-ES are left out on "
        "the small network and for random costs 1 to 4, which the small network "
        "lacks altogether. 50 queries are made on ResNet-32 alone, and not for "
        "metrics of the confusion matrix.",
        f"First samples of searches have a standard deviation of {DEVIATION}, "
        "because d exceeds 100.",
        "Most of these metrics agree with cross-entropy, so that little can be gained.",
    )


def shown(tier: str, network: str, box: black_boxes.BlackBox) -> tuple[Row, ...]:
    """Return the rows of a column; none for a column left out, to save time."""
    small, further = network == "small", box in black_boxes.FURTHER_COSTS
    if tier != "local":
        return black_boxes.rows(tier)
    if small and further:
        return ()
    hard = box.name in black_boxes.HARD_TO_IDENTIFY
    left_out = SLOW if small or further else () if hard else (black_boxes.PATIENT.name,)
    return tuple(row for row in black_boxes.rows(tier) if row.name not in left_out)


EXPERIMENTS.register("unseen-images")(experiment_of("unseen-images", unseen_images))

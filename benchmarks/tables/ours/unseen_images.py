"""Black boxes that no statistic was made for, on CIFAR-10: identified or not? Ours.

Two released networks, each searched several times. See `unseen` for what counts.
"""

from dataclasses import replace
from itertools import product

from benchmarks.problems.images.tiers import (
    CONVENTION,
    FILM_AND_OFFSETS,
    SIZES,
    TrainedNetwork,
    cifar10,
)
from benchmarks.problems.problem import DEVIATION
from benchmarks.report.layout import Block
from benchmarks.rows.contract import Row
from benchmarks.tables.ours.black_boxes import (
    ASKS,
    BUDGETS,
    CAPTION,
    FURTHER_COSTS,
    HARD_TO_IDENTIFY,
    NOTES,
    PATIENT,
    QUERIES,
    BlackBox,
    black_boxes,
    columns,
    rows,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

NETWORKS = {"resnet32": "ResNet-32", "small": "small network"}
SMOKE_NETWORKS = {"digit-net": "digits"}
TESTS = {"paper": 3, "local": 2, "smoke": 1}
"""Searches of a network, which the spread is over."""
SLOW = ("random-search", "guided-cma", PATIENT.name)
"""Rows that tier local lacks on the small network and for further random costs."""


def unseen_images(tier: str) -> Table:
    """Return the table of black boxes on images at a tier."""
    networks = SMOKE_NETWORKS if tier == "smoke" else NETWORKS
    size, tests = SIZES[tier], TESTS[tier]
    sized = replace(size, search_queries=QUERIES[tier], search_tests=tests, seeds=tests)
    problem = cifar10(tier, size=sized, adapter=FILM_AND_OFFSETS)
    boxes = black_boxes(tier, classes=10)
    places = (
        Place(
            network,
            replace(problem, network=TrainedNetwork(network)),
            box.unit,
            f"{problem.name}/{box.name}",
            rows=shown(tier, network, box),
            asks=ASKS,
        )
        for network, box in product(networks, boxes)
    )
    return table(
        [place for place in places if place.rows],
        title="Black boxes that no statistic was made for, on images",
        caption=(
            "FiLM on the last batch norm and an offset for every output, "
            f"T = {size.steps}. {CAPTION}"
        ),
        convention=CONVENTION,
        blocks=tuple(Block(*item) for item in networks.items()),
        columns=columns(problem, boxes),
        untouched_row="cross-entropy",
        query_budgets=BUDGETS,
        notes=(*NOTES, *_notes(tests)),
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
        "Every method searches each network twice; all metrics but the calibration "
        "error are identified in every search after about 9 queries. MetricOpt on "
        "outputs makes no row worse. Most of these metrics agree with cross-entropy, "
        "and most searches return the network untouched.",
        "CMA-ES with 150 queries gets further on the calibration error (50 queries of "
        "ours gain nothing on ResNet-32) and a little further on random costs 0, 1, 2 "
        "and 4, F2 and the worst classes of ResNet-32. It makes Matthews' correlation "
        "and the reciprocal rank of ResNet-32 slightly worse.",
    )


def shown(tier: str, network: str, box: BlackBox) -> tuple[Row, ...]:
    """Return the rows of a column; none for a column left out, to save time."""
    small, further = network == "small", box in FURTHER_COSTS
    if tier != "local":
        return rows(tier)
    if small and further:
        return ()
    hard = box.name in HARD_TO_IDENTIFY
    left_out = SLOW if small or further else () if hard else (PATIENT.name,)
    return tuple(row for row in rows(tier) if row.name not in left_out)


EXPERIMENTS.register("unseen-images")(experiment_of("unseen-images", unseen_images))

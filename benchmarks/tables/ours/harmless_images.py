"""Does it do harm? CIFAR-10 with small observe splits. Ours.

The released ResNet-32, with 200, 500 and 2,000 of the images that other tables observe.
Train split, test split and network stay as they are.
"""

from dataclasses import replace
from itertools import product

from benchmarks.problems.images import tiers
from benchmarks.problems.images.settings import ImageSettings
from benchmarks.problems.problem import DEVIATION
from benchmarks.rows.controls import CROSS_ENTROPY
from benchmarks.runs.codec import decode
from benchmarks.runs.spec import RunSpec, Unit
from benchmarks.tables.ours import small_observe
from benchmarks.tables.parts import column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

METRICS = {"mcr": "MCR", "worst-class-error": "worst-class error", "f-macro": "macro F"}
SMOKE_METRICS = {"f-macro": "macro F"}
SMOKE_OBSERVED = (60, 120)
TESTS = {"paper": 3, "local": 2, "smoke": 1}
"""Searches of the network, which the spread is over."""


def harmless_images(tier: str) -> Table:
    """Return the table on harm, on images, at a tier."""
    metrics = SMOKE_METRICS if tier == "smoke" else METRICS
    observed = SMOKE_OBSERVED if tier == "smoke" else small_observe.OBSERVED
    size, tests = tiers.SIZES[tier], TESTS[tier]
    sized = replace(
        size,
        search_queries=small_observe.QUERIES[tier],
        search_tests=tests,
        seeds=tests,
    )
    problem = tiers.cifar10(tier, size=sized, adapter=tiers.FILM_AND_OFFSETS)
    searched = (row.running(meta_tests=tests) for row in small_observe.SEARCHED)
    rows = (CROSS_ENTROPY, *searched)
    return table(
        [
            Place(
                small_observe.block_of("natural", count).name,
                replace(problem, observed=count),
                Unit(name),
                rows=rows,
                asks=small_observe.ASKS,
            )
            for count, name in product(observed, metrics)
        ],
        title="Harm and gain with small observe splits, on images",
        caption=(
            f"{tiers.network_label(tier)}, FiLM on the last batch norm and an offset "
            f"for every output, T = {size.steps}. {small_observe.CAPTION}"
        ),
        convention="Training and test images are those of Table 1.",
        blocks=tuple(small_observe.block_of("natural", count) for count in observed),
        columns=tuple(
            column_of(problem, Unit(name), label) for name, label in metrics.items()
        ),
        untouched_row="cross-entropy",
        query_budgets=small_observe.BUDGETS,
        observed_of=observed_of,
        notes=(*small_observe.NOTES, *_notes(tests)),
    )


def _notes(tests: int) -> tuple[str, ...]:
    """Return what is told of these networks, each searched so many times."""
    return (
        f"There is one network, searched {tests} times on the same images, "
        "the first of the 5,000 that other tables observe. The spread does not "
        "hold what other images would change.",
        f"First samples of CMA-ES have a standard deviation of {DEVIATION}, "
        "because d exceeds 100.",
        "Two searches are averaged in each cell, which `harmed` counts as one. The "
        "worst class alone has about 20, 50 and 200 images to observe.",
    )


def observed_of(spec: RunSpec) -> int:
    """Return the images of the observe split of a run, which is always cut here."""
    return decode(ImageSettings, spec.pipeline.settings).observed or 0


EXPERIMENTS.register("harmless-images")(
    experiment_of("harmless-images", harmless_images)
)

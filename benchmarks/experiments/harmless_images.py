"""Does it do harm? CIFAR-10 with small observe splits. Ours.

The released ResNet-32, with 200, 500 and 2,000 of the images that other tables observe.
Train split, test split and network stay as they are.
"""

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared.image_arms import DEVIATION
from benchmarks.experiments.shared.plans import Part, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import CIFAR10, DIGITS, NamedProblem
from benchmarks.experiments.shared.small_observe import (
    BUDGETS,
    CAPTION,
    NOTES,
    OBSERVED,
    QUERY_ARMS,
    SEARCHED,
    UNTOUCHED,
    block_name,
    block_of,
    plans,
)
from benchmarks.problems.images.settings import ImageProblem, ImageSettings
from benchmarks.problems.images.tiers import (
    FILM_AND_OFFSETS,
    SIZES,
    TrainedNetwork,
    default_network,
    image_pipeline,
    network_label,
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import TableLayout
from benchmarks.runs.codec import decode
from benchmarks.runs.spec import RunSpec, Unit

METRICS = {"mcr": "MCR", "worst-class-error": "worst-class error", "f-macro": "macro F"}
SMOKE_METRICS = {"f-macro": "macro F"}
SMOKE_OBSERVED = (60, 120)
TESTS = {"paper": 3, "local": 2, "smoke": 1}
"""Searches of the network, which the spread is over."""


def of_tier(
    tier: str,
) -> tuple[NamedProblem[ImageProblem], tuple[int, ...], dict[str, str]]:
    """Return the images of a tier, the sizes of their observe split, the metrics."""
    if tier == "smoke":
        return DIGITS, SMOKE_OBSERVED, SMOKE_METRICS
    return CIFAR10, OBSERVED, METRICS


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    problem, sizes, metrics = of_tier(tier)
    data, trained = problem.here(offline), TrainedNetwork(default_network(tier))
    filled = plans(tier, TESTS[tier], deviation=DEVIATION)
    size, parts = SIZES[tier], []
    for observed in sizes:
        pipeline = image_pipeline(
            tier, data, trained, adapter=FILM_AND_OFFSETS, observed=observed
        )
        rows = on_pipeline(pipeline, filled, with_offsets=pipeline)
        block = block_name("natural", observed)
        for metric in metrics:
            column = f"{problem.name}/{metric}"
            parts.append(Part(block, column, metric, size.steps, rows))
    count = replicates or size.replicates
    return table_specs("harmless-images", tier, parts, replicates=count)


def layout(tier: str) -> TableLayout:
    """Return what the table looks like at a tier."""
    problem, sizes, metrics = of_tier(tier)
    ratio = problem.problem.test_per_train
    return TableLayout(
        experiment="harmless-images",
        title="Harm and gain with small observe splits, on images",
        caption=(
            f"{network_label(tier)}, FiLM on the last batch norm and an offset for "
            f"every output, T = {SIZES[tier].steps}. {CAPTION}"
        ),
        convention="Training and test images are those of Table 1.",
        blocks=tuple(block_of("natural", observed) for observed in sizes),
        rows=(UNTOUCHED, *SEARCHED),
        columns=tuple(
            Column(f"{problem.name}/{name}", label, Unit(name), test_per_train=ratio)
            for name, label in metrics.items()
        ),
        untouched_row="cross-entropy",
        query_budgets=BUDGETS,
        query_arms=QUERY_ARMS,
        network_of=network_of,
        observed_of=observed_of,
        notes=(
            *NOTES,
            f"There is one network, searched {TESTS[tier]} times on the same images, "
            "the first of the 5,000 that other tables observe. The spread does not "
            "hold what other images would change.",
            f"First samples of CMA-ES have a standard deviation of {DEVIATION}, "
            "because d exceeds 100.",
        ),
    )


def observed_of(spec: RunSpec) -> int:
    """Return the images of the observe split of a run, which is always cut here."""
    return decode(ImageSettings, spec.pipeline.settings).observed or 0


EXPERIMENTS.register("harmless-images")(Experiment("harmless-images", layout, specs))

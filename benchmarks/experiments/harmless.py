"""Does it do harm? Tabular data with small observe splits. Ours.

What is handed over must not be worse on test than the untouched network, whatever the
data, and however few examples there are to query on. In some of these situations there
is much to gain, in others next to nothing.
"""

from dataclasses import dataclass, replace
from itertools import product

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.plans import Part, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import (
    A9A,
    CANCER,
    COVTYPE,
    DIGIT,
    NamedProblem,
    convention,
    metric_column,
)
from benchmarks.experiments.shared.small_observe import (
    BUDGETS,
    CAPTION,
    NOTES,
    OBSERVED,
    QUERY_ARMS,
    SEARCHED,
    UNTOUCHED,
    WHOLE,
    block_name,
    block_of,
    plans,
)
from benchmarks.problems.tabular.settings import BinaryProblem, TabularSettings
from benchmarks.problems.tabular.tiers import (
    EPOCHS,
    SIZES,
    STEPS,
    Sampling,
    tabular_pipeline,
)
from benchmarks.report.layout import TableLayout
from benchmarks.runs.codec import decode
from benchmarks.runs.spec import RunSpec, Unit

OBSERVED_PER_EXAMPLE = 10
"""Examples of a problem per example of its observe split."""
EPOCHS_OF = {200: 40, 500: 30, 2_000: 15}
"""Length of pre-training by size of the observe split: few examples need more."""


@dataclass(frozen=True)
class Situation:
    """A problem as it is sampled, and in which sizes.

    Attributes:
        problem: the data.
        samplings: of mini-batches; each gives other networks.
        observed: sizes of the observe split; `WHOLE` for all there is.
    """

    problem: NamedProblem[BinaryProblem]
    samplings: tuple[Sampling, ...]
    observed: tuple[int, ...] = (WHOLE,)

    @property
    def places(self) -> list[tuple[Sampling, int]]:
        """The sampling and the size of every block it is in."""
        return list(product(self.samplings, self.observed))


BOTH: tuple[Sampling, ...] = ("balanced", "natural")
SITUATIONS = (
    Situation(A9A, BOTH, OBSERVED),
    # Half of its examples are positive: class-balanced sampling changes nothing.
    Situation(COVTYPE, ("natural",), OBSERVED),
    Situation(DIGIT, BOTH),
    Situation(CANCER, ("natural",)),
)
SMOKE_SITUATIONS = (
    Situation(DIGIT, ("balanced",), (100, WHOLE)),
    Situation(CANCER, ("natural",)),
)
METRICS, SMOKE_METRICS = ("mcr", "f1", "g-mean"), ("f1",)

ROWS = (UNTOUCHED, *outputs.rows("threshold-shift"), *SEARCHED)


def of_tier(tier: str) -> tuple[tuple[Situation, ...], tuple[str, ...]]:
    """Return the situations of a tier, and the metrics of all."""
    if tier == "smoke":
        return SMOKE_SITUATIONS, SMOKE_METRICS
    return SITUATIONS, METRICS


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    filled = plans(tier) | outputs.post_hoc_plans("threshold-shift")
    (situations, metrics), parts = of_tier(tier), []
    for situation in situations:
        data = situation.problem.here(offline)
        for sampling, observed in situation.places:
            pipeline = small_pipeline(tier, data, sampling, observed)
            rows = on_pipeline(pipeline, filled, with_offsets=pipeline)
            block = block_name(sampling, observed)
            for metric in metrics:
                column = f"{situation.problem.name}/{metric}"
                parts.append(Part(block, column, metric, STEPS, rows))
    count = replicates or SIZES[tier].replicates
    return table_specs("harmless", tier, parts, replicates=count)


def small_pipeline(
    tier: str, data: BinaryProblem, sampling: Sampling, observed: int
) -> Unit:
    """Return the pipeline of a problem with so many examples to observe."""
    examples = OBSERVED_PER_EXAMPLE * observed or None
    return tabular_pipeline(
        tier,
        replace(data, max_examples=examples),
        sampling,
        epochs=EPOCHS_OF.get(observed, EPOCHS[data.dataset]),
        offsets=True,
    )


def layout(tier: str) -> TableLayout:
    """Return what the table looks like at a tier."""
    situations, metrics = of_tier(tier)
    places = [place for situation in situations for place in situation.places]
    problems = [situation.problem for situation in situations]
    problems = list(dict.fromkeys(problems))
    return TableLayout(
        experiment="harmless",
        title="Harm and gain with small observe splits",
        caption=(
            "MLP 100-30-10-1, d = 16 dynamic input biases and an output offset, "
            f"T = {STEPS}. {CAPTION}"
        ),
        convention=convention(problems),
        blocks=tuple(block_of(*place) for place in dict.fromkeys(places)),
        rows=ROWS,
        columns=tuple(metric_column(*place) for place in product(problems, metrics)),
        untouched_row="cross-entropy",
        query_budgets=BUDGETS,
        query_arms=QUERY_ARMS,
        observed_of=observed_of,
        notes=(
            *NOTES,
            "Sub-samples are random, and every replicate has its own: 7 parts to "
            "train, 1 to observe, 2 to test. Training takes 40, 30 or 15 epochs, "
            "because few examples need more of them.",
            "Small sets: 180 digits and 57 tumours to observe. The wine and iris data "
            "of scikit-learn would have 18 and 15. Below 50 nothing is cross-fitted.",
            "CoverType has no class-balanced block, because half of its examples are "
            "positive.",
        ),
    )


def observed_of(spec: RunSpec) -> int:
    """Return the examples of the observe split of a run."""
    return decode(TabularSettings, spec.pipeline.settings).problem.observed


EXPERIMENTS.register("harmless")(Experiment("harmless", layout, specs))

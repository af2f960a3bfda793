"""Does it do harm? Tabular data with small observe splits. Ours.

What is handed over must not be worse on test than the untouched network, whatever the
data, and however few examples there are to query on. In some of these situations there
is much to gain, in others next to nothing.
"""

from dataclasses import dataclass, replace
from itertools import product

from benchmarks.problems.tabular import tiers
from benchmarks.problems.tabular.pipeline import TabularSettings
from benchmarks.rows.controls import CROSS_ENTROPY
from benchmarks.rows.post_hoc import THRESHOLD_SHIFT
from benchmarks.runs.codec import decode
from benchmarks.runs.spec import RunSpec, Unit
from benchmarks.tables.ours import small_observe
from benchmarks.tables.parts import column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

OBSERVED_PER_EXAMPLE = 10
"""Examples of a problem per example of its observe split."""
EPOCHS_OF = {200: 40, 500: 30, 2_000: 15}
"""Length of pre-training by size of the observe split: few examples need more."""


@dataclass(frozen=True)
class Situation:
    """A problem as it is sampled, and in which sizes.

    Attributes:
        problem: the data.
        samplings: class shares of mini-batches; each gives other networks.
        observed: sizes of the observe split; `WHOLE` for all there is.
    """

    problem: tiers.Binary
    samplings: tuple[tiers.Sampling, ...]
    observed: tuple[int, ...] = (small_observe.WHOLE,)

    @property
    def blocks(self) -> list[tuple[tiers.Sampling, int]]:
        """The sampling and the size of every block it is in."""
        return list(product(self.samplings, self.observed))


ROWS = (CROSS_ENTROPY, THRESHOLD_SHIFT, *small_observe.SEARCHED)

BOTH: tuple[tiers.Sampling, ...] = ("balanced", "natural")
SITUATIONS = (
    Situation(tiers.A9A, BOTH, small_observe.OBSERVED),
    # Half of its examples are positive: class-balanced sampling changes nothing.
    Situation(tiers.COVTYPE, ("natural",), small_observe.OBSERVED),
    Situation(tiers.DIGIT, BOTH),
    Situation(tiers.CANCER, ("natural",)),
)
SMOKE_SITUATIONS = (
    Situation(tiers.DIGIT, ("balanced",), (100, small_observe.WHOLE)),
    Situation(tiers.CANCER, ("natural",)),
)
METRICS, SMOKE_METRICS = ("mcr", "f1", "g-mean"), ("f1",)


def harmless(tier: str) -> Table:
    """Return the table on harm at a tier."""
    smoke = tier == "smoke"
    situations = SMOKE_SITUATIONS if smoke else SITUATIONS
    metrics = [Unit(name) for name in (SMOKE_METRICS if smoke else METRICS)]
    blocks = [block for situation in situations for block in situation.blocks]
    problems = list(dict.fromkeys(situation.problem for situation in situations))
    return table(
        [
            _place(tier, situation.problem, *block, metric)
            for situation in situations
            for block in situation.blocks
            for metric in metrics
        ],
        title="Harm and gain with small observe splits",
        caption=(
            "MLP 100-30-10-1, d = 16 dynamic input biases and an output offset, "
            f"T = {tiers.STEPS}. {small_observe.CAPTION}"
        ),
        convention=tiers.convention(problems),
        blocks=tuple(small_observe.block_of(*block) for block in dict.fromkeys(blocks)),
        columns=tuple(column_of(*place) for place in product(problems, metrics)),
        untouched_row="cross-entropy",
        query_budgets=small_observe.BUDGETS,
        observed_of=observed_of,
        notes=(
            *small_observe.NOTES,
            "Sub-samples are random, and every replicate has its own: 7 parts to "
            "train, 1 to observe, 2 to test. Training takes 40, 30 or 15 epochs, "
            "because few examples need more of them.",
            "Small sets: 180 digits and 57 tumours to observe. The wine and iris data "
            "of scikit-learn would have 18 and 15. Below 50 nothing is cross-fitted.",
            "CoverType has no class-balanced block, because half of its examples are "
            "positive.",
            "`mean` and `least` are over cells, a metric of a data set each; `harmed` "
            "counts single networks. Five replicates are too few for a test to call "
            "any row worse, so look at `harmed`. The price of the check: with fewer "
            "examples more real gains are refused.",
        ),
    )


def _place(
    tier: str,
    problem: tiers.Binary,
    sampling: tiers.Sampling,
    observed: int,
    metric: Unit,
) -> Place:
    examples = OBSERVED_PER_EXAMPLE * observed or None
    sampled = problem.at(
        tier,
        size=replace(
            tiers.SIZES[tier], queries=small_observe.QUERIES[tier], search_tests=1
        ),
        data=replace(problem.data, max_examples=examples),
        sampling=sampling,
        epochs=EPOCHS_OF.get(observed),
        offsets=True,
    )
    block = small_observe.block_of(sampling, observed).name
    return Place(block, sampled, metric, rows=ROWS, asks=small_observe.ASKS)


def observed_of(spec: RunSpec) -> int:
    """Return the examples of the observe split of a run."""
    return decode(TabularSettings, spec.pipeline.settings).problem.observed


EXPERIMENTS.register("harmless")(experiment_of("harmless", harmless))

"""The first look: a small comparison on data that scikit-learn brings along.

Handwritten digits, 8 against the rest, with a network trained briefly on class-balanced
mini-batches: cross-entropy then calls too many digits an 8, and F suffers. And all ten
digits with a convolutional network and FiLM, trained where high digits are rare.
"""

from dataclasses import replace

from benchmarks import images
from benchmarks.experiment import EXPERIMENTS, Experiment, check_tier
from benchmarks.layout import Block, Column, Row, TableLayout
from benchmarks.problems import CANCER, DIGIT, convention, metric_column
from benchmarks.protocol import Arm, Place, method
from benchmarks.records import RunSpec
from benchmarks.tasks import resolve_variant
from benchmarks.uci import STEPS, Problem, spec

REPLICATES, MEETINGS, QUERIES, TASKS = 5, 5, 900, 290

PROBLEMS: tuple[tuple[Problem, tuple[str, ...]], ...] = (
    (replace(DIGIT, epochs=4), ("mcr", "f1")),
    (replace(CANCER, epochs=10), ("f1",)),
)

TAIL = images.Problem("digits-tail", "digits", imbalance=10)
TAIL_COLUMN = f"{TAIL.name}/f-macro"
TAIL_SIZE = images.Size(examples=1_000, batch_size=64, steps=STEPS)

ROWS = (
    Row("cross-entropy", "CE, untouched (phi = 0)"),
    Row("loss-only", "CE fine-tune, last step"),
    Row("threshold-shift", "threshold shift", "loss-only"),
    Row("class-offsets", "class offsets", "loss-only"),
    Row("random-search", "random search", "loss-only"),
    Row("cma-es", "CMA-ES", "loss-only"),
    Row("guided-cma", "guided CMA-ES (ours)", "loss-only"),
    Row("metricopt-literal", "MetricOpt, literal", "loss-only"),
    Row("metricopt", "MetricOpt (SGD)", "loss-only"),
)


def arms() -> dict[str, Arm]:
    """Return the arms by row."""
    found = {
        name: Arm(*method(name), queries=QUERIES, meta_tests=1)
        for name in ("random-search", "cma-es", "guided-cma")
    }
    for name in ("metricopt-literal", "metricopt"):
        found[name] = Arm(
            *method(name, recipe={"tasks": TASKS}),
            queries=QUERIES,
            meta_tests=MEETINGS,
            diagnose=True,
        )
    return found | {
        "cross-entropy": Arm(*method("untouched")),
        "loss-only": Arm(*method("loss-only"), meta_tests=MEETINGS),
        "threshold-shift": Arm("threshold-shift"),
    }


def tail_arms() -> dict[str, Arm]:
    """Return the arms of the convolutional network by row."""
    found = {row: arm for row, arm in arms().items() if row != "threshold-shift"}
    for name in ("random-search", "cma-es", "guided-cma"):
        found[name] = Arm(*method(name, deviation=0.1), queries=QUERIES, meta_tests=1)
    found["class-offsets"] = Arm("class-offsets", settings=(("reach", 2.0),))
    return found


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs; they are the same at every tier but the epochs."""
    check_tier(tier, replicates)
    repeats = range(replicates or REPLICATES)
    found = [
        spec(
            Place("quick", tier, "balanced", row, metric, replicate),
            problem,
            resolve_variant(problem.dataset, offline=offline),
            arm,
        )
        for problem, metrics in PROBLEMS
        for metric in metrics
        for row, arm in arms().items()
        for replicate in repeats
    ]
    variant = resolve_variant(TAIL.dataset, offline=offline)
    backbone = images.Backbone("digit-net")
    setting = images.Setting(TAIL_COLUMN, TAIL, variant, backbone)
    for row, arm in tail_arms().items():
        for replicate in repeats:
            place = Place("quick", tier, "balanced", row, "f-macro", replicate)
            found.append(images.spec(place, setting, arm, TAIL_SIZE))
    return found


def layout(tier: str) -> TableLayout:
    """Return what the table looks like."""
    return TableLayout(
        experiment="quick",
        title="A first look, on embedded data",
        caption=(
            f"MLP 100-30-10-1, d = 16 dynamic input biases, T = {STEPS}; digits-tail: "
            f"two convolutions, FiLM of 32 scales and 32 shifts. At most {QUERIES} "
            "metric queries per result, meta-training included, but for shifts of "
            "thresholds and offsets, whose scores are at hand."
        ),
        convention=convention(DIGIT, CANCER),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        rows=ROWS,
        columns=(
            *(
                metric_column(problem, metric)
                for problem, metrics in PROBLEMS
                for metric in metrics
            ),
            Column(
                TAIL_COLUMN, "digits-tail macro F", "f-macro", higher_is_better=True
            ),
        ),
        loss_only_row="loss-only",
        threshold_shift_row="threshold-shift",
        query_budgets=(50, 150, 500, 900),
        query_arms=("random-search", "cma-es", "guided-cma", "metricopt"),
        notes=(
            "digits-tail: training digits from 0 to 9 are up to 10 times rarer, in "
            "exponential steps; observe and test are balanced, mini-batches are not.",
            "Splits are small (180 digits, 57 biopsies to observe on): a method that "
            "overfits them shows it here first.",
        ),
    )


EXPERIMENTS.register("quick")(
    Experiment("quick", "embedded data, no download, minutes", layout, specs)
)

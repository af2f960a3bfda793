"""The first look: a small comparison on data that scikit-learn brings along.

Handwritten digits, 8 against the rest, with a network trained briefly on class-balanced
mini-batches: cross-entropy then calls too many digits an 8, and F suffers. And all ten
digits with a convolutional network and FiLM, trained where high digits are rare.
"""

from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.image_arms import DEVIATION, class_offsets
from benchmarks.experiments.shared.plans import Part, Plan, on_pipeline, table_specs
from benchmarks.experiments.shared.problems import (
    CANCER,
    DIGIT,
    convention,
    image_problem,
    metric_column,
)
from benchmarks.problems.images.tiers import (
    FILM,
    FILM_AND_OFFSETS,
    ImageSize,
    TrainedNetwork,
    image_pipeline,
    network_of,
)
from benchmarks.problems.tabular.tiers import STEPS, tabular_parts
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, Row, TableLayout, finetuned
from benchmarks.runs.spec import RunSpec, Unit

QUERIES, TASKS = 750, 240
SIZE = arms.Size(replicates=5, meta_tests=5)

PROBLEMS = ((DIGIT, ("mcr", "f1")), (CANCER, ("f1",)))
EPOCHS = {"digits": 4, "breast_cancer": 10}

TAIL = image_problem("digits-tail", "digits", imbalance=10)
TAIL_METRIC = "f-macro"
TAIL_COLUMN = f"{TAIL.name}/{TAIL_METRIC}"
TAIL_SIZE = ImageSize(examples=1_000, batch_size=64, steps=STEPS)

ROWS = (
    Row("cross-entropy", "CE, untouched (phi = 0)"),
    finetuned("loss-only", "CE fine-tune, last step"),
    *outputs.search_rows("loss-only"),
    finetuned("metricopt", "MetricOpt (SGD)", "loss-only"),
    *outputs.rows("threshold-shift"),
    Row("class-offsets", "class offsets", "cross-entropy", sees=outputs.SCORES),
    *outputs.rows("prior-correction", outputs.OURS),
)


def controls(**settings: float) -> dict[str, Plan]:
    """Return what MetricOpt has to beat, by row, with settings of the searches."""
    found = arms.controls(SIZE, steps=STEPS, queries=QUERIES, **settings)
    return {row: plan for row, plan in found.items() if row != "loss-only-dense"}


def metricopt() -> Plan:
    """Return MetricOpt."""
    arm = arms.method("metricopt", recipe={"tasks": TASKS})
    return Plan(arm, QUERIES, SIZE.meta_tests, diagnose=True)


def output_plans() -> dict[str, Plan]:
    """Return what searches an adapter with output offsets, or moves outputs, by row."""
    return {outputs.OURS: outputs.ours()} | outputs.post_hoc_plans("prior-correction")


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs; tiers differ in nothing but the pre-training."""
    check_tier(tier, replicates)
    plans = controls() | {"metricopt": metricopt()}
    plans |= outputs.post_hoc_plans("threshold-shift")
    plans |= output_plans()
    parts = tabular_parts(
        tier, PROBLEMS, lambda *place: plans, offline=offline, epochs=EPOCHS
    )
    tail_plans = controls(deviation=DEVIATION) | {"metricopt": metricopt()}
    tail_plans["class-offsets"] = class_offsets(2.0)
    network = TrainedNetwork("digit-net")
    tail_plans |= output_plans()
    plain, beside = (
        image_pipeline(
            tier, TAIL.here(offline), network, adapter=adapter, size=TAIL_SIZE
        )
        for adapter in (FILM, FILM_AND_OFFSETS)
    )
    rows = on_pipeline(plain, tail_plans, with_offsets=beside)
    parts.append(Part("balanced", TAIL_COLUMN, TAIL_METRIC, STEPS, rows))
    return table_specs("quick", tier, parts, replicates=replicates or SIZE.replicates)


def layout(tier: str) -> TableLayout:
    """Return what the table looks like."""
    return TableLayout(
        experiment="quick",
        title="A first look, on embedded data",
        caption=(
            f"MLP 100-30-10-1, d = 16 dynamic input biases, T = {STEPS}. digits-tail: "
            f"two convolutions, FiLM with 32 scales and 32 shifts. At most {QUERIES} "
            "metric queries per result, meta-training included. The limit does not "
            "hold for threshold shift and class offsets, which need scores anyway."
        ),
        convention=convention([DIGIT, CANCER]),
        blocks=(Block("balanced", "class-balanced mini-batches"),),
        rows=ROWS,
        columns=(
            *(
                metric_column(problem, metric)
                for problem, metrics in PROBLEMS
                for metric in metrics
            ),
            Column(
                TAIL_COLUMN,
                "digits-tail macro F",
                Unit(TAIL_METRIC),
                test_per_train=TAIL.problem.test_per_train,
            ),
        ),
        loss_only_row="loss-only",
        threshold_shift_row="threshold-shift",
        untouched_row="cross-entropy",
        query_budgets=(15, 50, 150, 500, 750),
        query_arms=(*arms.SEARCHES, "metricopt", outputs.OURS),
        network_of=network_of,
        notes=(
            "digits-tail: from 0 to 9 the training digits get rarer, exponentially, up "
            "to 10 times. Observe and test are balanced; mini-batches are not.",
            "The observe splits are small (180 digits, 57 biopsies): a method that "
            "overfits them shows it here first.",
        ),
    )


EXPERIMENTS.register("quick")(Experiment("quick", layout, specs))

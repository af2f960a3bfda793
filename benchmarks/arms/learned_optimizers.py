"""Arms whose steps an optimizer takes that was meta-trained before the run."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.arms.contract import ARMS, ArmKind, check_budget
from benchmarks.arms.results import budget_of, chosen_of, fine_tuning_generator
from benchmarks.problems.choices import Chosen, together
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.optimizers.learning import OptimizerLearning
from benchmarks.problems.optimizers.spec import QUERIES, SECONDS, OptimizerSpec
from benchmarks.runs.codec import decode
from benchmarks.runs.notes import META_STEPS
from benchmarks.runs.record import META_TRAINING
from benchmarks.runs.spec import Arm, RunSpec
from metricopt.algorithm_s1.metricopt_learned import MetricOptLearned
from metricopt.errors import ConfigError
from metricopt.methods.contract import Sees
from metricopt.methods.result import Budget
from metricopt.metrics.base import Metric

NOTED = {"inner_steps": META_STEPS, "iterations": "iterations", "skipped": "skipped"}
"""Facts of the meta-training that a run notes, with the names of the notes."""


def optimizers_of(spec: RunSpec) -> Sequence[OptimizerSpec]:
    """Return the optimizers that a run uses, one for each of its value functions.

    They were trained on the pipeline of the run, or on the one its arm names.

    Raises:
        ConfigError: if their settings do not go together.
    """
    learning = decode(OptimizerLearning, spec.arm.settings)
    learned_on = spec.arm.source or spec.pipeline
    found = [
        OptimizerSpec(learned_on, spec.metric, learning, spec.replicate, number)
        for number in range(spec.value_functions)
    ]
    found[0].check()
    return found


def run_learned(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Fine-tune phi with every optimizer of the run.

    Each result is charged with all queries of the meta-training.

    Raises:
        ConfigError: if the budget does not allow what the meta-training took.
        DivergedError: if an optimizer diverged in its meta-training.
        FairnessError: if one result cost more than its budget.
    """
    parts = [_with_one(each, spec, pipeline, metric) for each in optimizers_of(spec)]
    return together(parts) if len(parts) > 1 else parts[0]


def _with_one(
    wanted: OptimizerSpec, spec: RunSpec, pipeline: NetworkPipeline, metric: Metric
) -> Chosen:
    facts, budget = wanted.kept().facts, budget_of(spec)
    made = int(float(str(facts[QUERIES])))
    left = budget.queries - made
    if left < 0:
        raise ConfigError(
            f"a budget of {budget.queries} queries must allow the {made} of the "
            "meta-training"
        )
    task = pipeline.task(metric)
    task.meter.limit = left * spec.meta_tests
    method = MetricOptLearned(known=wanted.find())
    with warnings.catch_warnings():
        # Columns of longer runs are there to show what becomes of it.
        warnings.filterwarnings("ignore", "the optimizer was trained for runs of")
        result = method.from_starts(wanted.learning.start_deviation).run(
            task,
            Budget(left, budget.gradient_steps),
            fine_tuning_generator(spec, pipeline),
            rows=spec.meta_tests,
        )
    spent = result.queries + made
    check_budget(spec.arm.kind, spent=spent, allowed=budget.queries)
    chosen = chosen_of(result, metric, task.meter.made)
    notes = {name: float(str(facts[fact])) for fact, name in NOTED.items()}
    return replace(
        chosen,
        queries=spent,
        shared_queries=made,
        prepared={"observe": made} if made else {},
        points=tuple(
            replace(point, queries=point.queries + made) for point in chosen.points
        ),
        notes=dict(chosen.notes) | notes,
        seconds={META_TRAINING: float(str(facts[SECONDS]))},
    )


def _sees(arm: Arm) -> Sees:
    learning = decode(OptimizerLearning, arm.settings)
    of_outputs = learning.supervision == "statistics"
    return "outputs and labels" if of_outputs else "loss gradients"


ARMS.register("learned-optimizer")(
    ArmKind(run_learned, sees=_sees, needs=optimizers_of)
)

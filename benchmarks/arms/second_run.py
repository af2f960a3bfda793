"""The second run of MetricOpt: theta goes on from the tuned phi, then phi once more.

Source: Huang et al., CVPR 2021, Sec. 4.3: "we build on the finetuned phi in the first
run, and continue to fine-tune theta (using cross-entropy loss) followed by a quick
adjustment of phi". Open there: how long theta is trained, which the schedule of the arm
says, and where the second value function comes from: here it is the first one.
"""

from collections import Counter

from torch import Tensor

from benchmarks.arms.contract import ARMS, ArmKind, check_budget
from benchmarks.arms.preparations import (
    budget_of,
    make_method,
    prepare,
    sees_of_method,
    trains_value_function,
)
from benchmarks.problems.choices import Chosen, Trained
from benchmarks.problems.contract import Pipeline
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError
from metricopt.methods.result import Budget
from metricopt.metrics.base import Metric


def run_second(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Fine-tune phi, train theta with it, and fine-tune phi of the new network.

    Raises:
        ConfigError: if the method learns no value function of phi, the run has several
            results, or the pipeline trains no network further.
    """
    method = make_method(spec.arm)
    if spec.meta_tests > 1:
        raise ConfigError(
            f"a second run needs one meta-test, as it trains a network for it, got "
            f"{spec.meta_tests}"
        )
    generator = pipeline.seeds.generator("second run", spec.metric.label)
    prepared, budget = prepare(method, spec, pipeline), budget_of(spec)
    task = pipeline.task(metric)
    first = method.run(task, budget, generator, prepared=prepared.preparation)
    onwards = method.starting(first.phi)
    moved = pipeline.continued(first.phi[0], spec.arm.schedule, generator=generator)
    known = first.known[0].made_for(pipeline.adapter_settings)
    again = onwards.knowing(known, moved.adapter_settings)
    other = moved.task(metric)
    left = Budget(budget.queries - first.queries, budget.gradient_steps)
    second = again.run(other, left, generator)
    spent = first.queries + second.queries
    check_budget(spec.arm.name, spent=spent, allowed=budget.queries)

    def predict(inputs: Tensor) -> Tensor:
        return moved.predict(inputs, second.phi[0])

    made = Counter(task.meter.made)
    made.update(other.meter.made)
    return Chosen(
        Trained(predict),
        queries=spent,
        gradient_steps=first.gradient_steps + second.gradient_steps,
        evaluations=dict(made),
        prepared=prepared.made,
        notes={"step": second.notes["step"]},
        seconds=dict(prepared.seconds),
    )


ARMS.register("second-run")(
    ArmKind(run_second, trains_value_function, sees=sees_of_method)
)

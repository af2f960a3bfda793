"""The arm that fine-tunes phi by the loss that another network was trained with."""

from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.arms.results import budget_of, chosen_of, fine_tuning_generator
from benchmarks.problems.choices import Chosen
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.runs.codec import changed
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS
from metricopt.metrics.base import Metric


def run_other_loss(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Choose phi by a method that follows the loss of the arm's other pipeline.

    What that loss learned while it trained its own network stays as it is.

    Raises:
        ConfigError: if the arm names no other network pipeline.
    """
    source = spec.arm.source and make_pipeline(spec.arm.source, pipeline.replicate)
    if not isinstance(source, NetworkPipeline):
        raise ConfigError(
            "the arm 'other-loss' needs the pipeline of the network whose loss it "
            f"follows, got {spec.arm.source}"
        )
    task = pipeline.task(metric).following(source.loss)
    task.meter.limit = spec.budget.queries * spec.meta_tests
    result = changed(METHODS.get(spec.arm.name)(), spec.arm.settings).run(
        task,
        budget_of(spec),
        fine_tuning_generator(spec, pipeline),
        rows=spec.meta_tests,
    )
    return chosen_of(result, metric, task.meter.made)


ARMS.register("other-loss")(ArmKind(run_other_loss, sees=lambda arm: "loss gradients"))

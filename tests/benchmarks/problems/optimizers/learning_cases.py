"""Short meta-trainings of optimizers, on 569 examples."""

from benchmarks.problems.optimizers.learning import OptimizerLearning
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Arm
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS
from tests.benchmarks.problems.pipeline_cases import make_spec

T = 6
SHORT = {"iterations": 3, "tasks": 2, "pairs": 1}
ALL = {"inputs": list(ALL_INPUTS)}
ON_LOSS = OptimizerLearning(
    steps=T,
    form={"inputs": ["gradient", "loss change", "time"]},
    supervision="loss",
    training=SHORT,
)
JOINT = OptimizerLearning(steps=T, form=ALL, queries=30, training=SHORT)
BY_METRIC = OptimizerLearning(
    steps=T, form=ALL, supervision="metric", queries=84, training=SHORT
)
BY_STATISTICS = OptimizerLearning(
    steps=T, form=ALL, supervision="statistics", queries=20, training=SHORT
)


def learned_spec(learning, queries=0, *, rows=2, **fields):
    """Return the spec of a short run of a learned optimizer."""
    arm = Arm("learned-optimizer", settings=encode(learning))
    return make_spec(arm, queries=queries, meta_tests=rows, **fields)

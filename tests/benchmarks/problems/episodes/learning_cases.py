"""Meta-trainings of a second, on drawn classes and on sine waves."""

from dataclasses import replace

from benchmarks.problems.episodes.images import ImageSettings
from benchmarks.problems.episodes.learning import ImageLearning, SineLearning
from benchmarks.problems.episodes.meta_settings import MetaSettings
from benchmarks.problems.episodes.networks import Conv4Settings, SineMlp
from benchmarks.problems.episodes.sines import SineSettings
from benchmarks.runs.codec import encode
from benchmarks.runs.notes import TASK_DIVERGED
from benchmarks.runs.spec import Arm, RunSpec, Unit

SHORT = MetaSettings(iterations=3, episodes=1, validations=1, validated=2)
DRAWN = ImageLearning(
    episodes=ImageSettings(
        dataset="drawn-classes", ways=3, shots=1, queries=2, test_episodes=3
    ),
    network=Conv4Settings(channels=4),
    training=SHORT,
    learner=Unit("maml", {"rate": 0.1, "steps": 2}),
)
MAPPED = replace(DRAWN, learner=Unit("mirror-descent", {"rate": 0.1, "steps": 2}))
WAVES = SineLearning(
    episodes=SineSettings(shots=3, queries=3, test_episodes=3),
    network=SineMlp(),
    training=replace(SHORT, episodes=2),
    learner=Unit("maml", {}),
)
NAMES = {ImageLearning: "few-shot-images", SineLearning: "sine-waves"}


def learner_run(learning, arm=None, **fields):
    """A run of a learner on its new tasks."""
    name = "nearest-class-mean" if learning.learner is None else "learner"
    usual = {
        **{"experiment": "few-shot", "tier": "smoke", "block": "new-tasks"},
        **{"row": "maml", "column": "tasks", "replicate": 0},
        "pipeline": Unit(NAMES[type(learning)], encode(learning)),
        "metric": Unit(learning.metric),
        "also": (Unit(TASK_DIVERGED),),
        "arm": arm or Arm(name),
    }
    return RunSpec(**usual | fields)

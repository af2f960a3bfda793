"""Arms on few-shot tasks: meta-trained learners, and one that learns nothing before."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.problems.choices import Chosen, OnEpisodes
from benchmarks.problems.episodes.course import InnerCourse
from benchmarks.problems.episodes.pipeline import EpisodesPipeline
from benchmarks.runs.codec import decode
from benchmarks.runs.notes import META_PARAMETERS, TRAINED_STEPS
from benchmarks.runs.record import META_TRAINING
from benchmarks.runs.spec import RunSpec
from metricopt.fewshot.episodes import Episodes
from metricopt.metrics.base import Metric

NOTED = (META_PARAMETERS, "kept", "skipped", "largest_gradient_norm")
"""Facts of the meta-training that a run notes."""


@dataclass(frozen=True)
class InnerSteps:
    """Settings of the arm.

    Attributes:
        steps: inner steps on a new task; None for as many as in meta-training.
    """

    steps: int | None = None


def run_learner(spec: RunSpec, pipeline: EpisodesPipeline, metric: Metric) -> Chosen:
    """Adapt the meta-trained learner of the pipeline to every new task."""
    theta, settings = pipeline.theta, decode(InnerSteps, spec.arm.settings)
    learner = theta.network
    steps = learner.steps if settings.steps is None else settings.steps
    outputs = partial(pipeline.learner_spec.outputs, learner, steps=steps)
    course = InnerCourse(learner, steps) if spec.pictured else None
    notes = {name: theta.facts[name] for name in NOTED} | {TRAINED_STEPS: learner.steps}
    seconds = {META_TRAINING: float(theta.facts["seconds"])}
    return Chosen(OnEpisodes(outputs, course), notes=notes, seconds=seconds)


def run_nearest_class_mean(
    spec: RunSpec, pipeline: EpisodesPipeline, metric: Metric
) -> Chosen:
    """Call every query after the class whose support images have the nearest mean."""
    return Chosen(OnEpisodes(nearest_class_mean))


def nearest_class_mean(episodes: Episodes) -> Tensor:
    """Return minus squared distances of queries to the means of classes, [B, Q, C].

    Distances are between the inputs themselves, all their numbers.
    """
    inputs, targets = episodes.support
    classes = int(targets.max()) + 1
    members = torch.nn.functional.one_hot(targets, classes).to(inputs)
    sums = torch.einsum("bsc,bsd->bcd", members, inputs.flatten(2))
    means = sums / members.sum(1)[..., None]
    return -torch.cdist(episodes.query_inputs.flatten(2), means).square()


ARMS.register("learner")(
    ArmKind(run_learner, sees=lambda arm: "loss gradients", on=EpisodesPipeline)
)
ARMS.register("nearest-class-mean")(
    ArmKind(run_nearest_class_mean, on=EpisodesPipeline)
)

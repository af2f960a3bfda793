"""Meta-trainings of every kind, each with what decides how it goes on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from metricopt.fewshot import MetaLearner, MetaTraining, meta_train, query_outputs
from metricopt.learned_optimizers import (
    MetricOptMLP,
    OptimizerTraining,
    train_optimizer,
)
from tests.metricopt.fewshot.drawn_episodes import WAYS, blobs, perceptron
from tests.metricopt.learned_optimizers.quadratics import Quadratics

SHORT = {"iterations": 6, "validate_every": 2, "save_every": 0}
EACH = 2
"""Tasks of an iteration."""


@dataclass(frozen=True)
class Training:
    """A meta-training of its own kind.

    Attributes:
        fresh: from a seed to what is trained, before its training.
        tasks: from numbers to tasks.
        run: trains it on tasks with settings, and returns what happened.
        settings: how it is trained.
    """

    fresh: Callable[[int], nn.Module]
    tasks: Callable[[Any], Any]
    run: Callable[..., Any]
    settings: Any

    def longer(self, iterations):
        return replace(self, settings=replace(self.settings, iterations=iterations))


def dropping(seed):
    """A learner whose network draws at random while it is trained."""
    network = perceptron(4, WAYS, seed).insert(1, nn.Dropout(0.2))
    return MetaLearner(network, nn.functional.cross_entropy, rate=0.1)


def accuracy(learner):
    episodes = blobs(range(900, 940))
    outputs = query_outputs(learner, episodes, batching="vmap")
    return (outputs.argmax(-1) == episodes.query_targets).float().mean().item()


def few_shot(optimizer):
    settings = MetaTraining(
        **SHORT, episodes=EACH, optimizer=optimizer, schedule="cosine"
    )
    run = partial(meta_train, validate=accuracy, show=False)
    return Training(dropping, blobs, run, settings)


def optimizer(estimator, **more):
    settings = OptimizerTraining(
        **SHORT, tasks=EACH, pairs=2, estimator=estimator, **more
    )
    held_out = Quadratics(range(900, 908))
    run = partial(train_optimizer, held_out=held_out, show=False)
    return Training(lambda seed: MetricOptMLP(6, seed=seed), Quadratics, run, settings)


TRAININGS = {
    "few-shot-adam": few_shot("adam"),
    "few-shot-sgd": few_shot("sgd"),
    "strategies": optimizer("strategies"),
    "merged": optimizer("merged"),
    "persistent": optimizer("persistent", window=4),
}


def same(trained, other):
    found, expected = trained.state_dict(), other.state_dict()
    return all(torch.equal(found[name], value) for name, value in expected.items())


def without_time(found):
    return replace(found, seconds=0.0)

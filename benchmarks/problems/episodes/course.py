"""How a learner adapts to new tasks, step by step."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from benchmarks.problems.episodes.metrics import ACCURACY
from benchmarks.runs.notes import (
    GRADIENT_NORM,
    INNER_STEPS,
    QUERY_ACCURACY,
    QUERY_STEPS,
    SUPPORT_LOSS,
)
from benchmarks.runs.spec import Unit, metric_of
from metricopt.fewshot.episodes import Episodes
from metricopt.fewshot.examples import Examples
from metricopt.fewshot.meta_learner import MetaLearner
from metricopt.geometry.parameters import dot

LOOKED_AT = (*range(11), 15, 20, 30, 40, 60, 80, 100)
"""Steps after which queries are answered: each time costs a forward pass of all."""


@torch.no_grad()
def inner_course(
    learner: MetaLearner, steps: int, batches: Iterable[Episodes]
) -> dict[str, Any]:
    """Return notes of support loss, gradient norm and query accuracy over inner steps.

    Losses and norms are medians over the episodes: one that diverges would be all of a
    mean. Where half of them diverge, the number is no number.

    Args:
        learner: the learner.
        steps: last inner step.
        batches: new episodes.
    """
    looked_at = [step for step in LOOKED_AT if step <= steps]
    place = next(learner.parameters()).device
    found = [
        _of_episode(learner, steps, looked_at, episode)
        for episodes in batches
        for episode in episodes.to(place).one_by_one()
    ]
    losses, norms, right = (torch.stack(each) for each in zip(*found, strict=True))
    return {
        INNER_STEPS: list(range(steps + 1)),
        SUPPORT_LOSS: _rounded(_median(losses)),
        GRADIENT_NORM: _rounded(_median(norms)),
        QUERY_STEPS: looked_at,
        QUERY_ACCURACY: _rounded(right.mean(0)),
    }


def _of_episode(
    learner: MetaLearner,
    steps: int,
    looked_at: list[int],
    episode: tuple[Examples, Examples],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return losses and norms at steps 0 to K, and the share of right queries."""
    support, (inputs, targets) = episode
    # One step more than asked for: a path ends without the loss at its end.
    path = learner.adapt(*support, steps=steps + 1)
    norms = [dot(gradient, gradient).sqrt() for gradient in path.gradients]
    metric = metric_of(Unit(ACCURACY))
    right = [
        metric.value(learner.predict(path.phi[step], inputs), targets)
        for step in looked_at
    ]
    return torch.stack(path.losses), torch.stack(norms), torch.tensor(right)


def _median(values: Tensor) -> Tensor:
    """Return the median over the first dimension, NaN counting as more than all."""
    return values.nan_to_num(torch.inf, torch.inf).median(0).values


def _rounded(values: Tensor) -> list[float]:
    return [float(f"{value:.4g}") for value in values.tolist()]

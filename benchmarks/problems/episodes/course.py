"""How a learner adapts to new tasks, step by step."""

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

LOOKED_AT = (*range(7), 8, 10, 15, 20, 30, 50, 75, 100)
"""Steps after which queries are answered: each time costs a forward pass of all."""


class InnerCourse:
    """Adapts to episodes, and keeps what it went through on the way.

    Args:
        learner: the learner.
        steps: last inner step.
    """

    def __init__(self, learner: MetaLearner, steps: int) -> None:
        self._learner, self._steps = learner, steps
        self._looked_at = sorted({s for s in LOOKED_AT if s < steps} | {steps})
        self._found: list[tuple[Tensor, Tensor, Tensor]] = []

    @torch.no_grad()
    def outputs(self, episodes: Episodes) -> Tensor:
        """Return the outputs on the queries after the last step, [B, Q, C]."""
        place = next(self._learner.parameters()).device
        every = episodes.to(place).one_by_one()
        return torch.stack([self._adapted(*episode) for episode in every])

    def notes(self) -> dict[str, Any]:
        """Return support loss, gradient norm and query accuracy over inner steps.

        Losses and norms are medians over all episodes so far: one that diverges would
        be all of a mean. Where half of them diverge, the number is no number.
        """
        losses, norms, right = map(torch.stack, zip(*self._found, strict=True))
        return {
            INNER_STEPS: list(range(self._steps + 1)),
            SUPPORT_LOSS: _rounded(_median(losses)),
            GRADIENT_NORM: _rounded(_median(norms)),
            QUERY_STEPS: self._looked_at,
            QUERY_ACCURACY: _rounded(right.mean(0)),
        }

    def _adapted(self, support: Examples, query: Examples) -> Tensor:
        """Return the outputs on one query, and keep its losses and norms."""
        # One step more than asked for: a path ends without the loss at its end.
        path = self._learner.adapt(*support, steps=self._steps + 1)
        norms = [dot(gradient, gradient).sqrt() for gradient in path.gradients]
        inputs, targets = query
        answers = [
            self._learner.predict(path.phi[step], inputs) for step in self._looked_at
        ]
        metric = metric_of(Unit(ACCURACY))
        right = torch.tensor([metric.value(each, targets) for each in answers])
        self._found.append((torch.stack(path.losses), torch.stack(norms), right))
        return answers[-1]


def _median(values: Tensor) -> Tensor:
    """Return the median over the first dimension, NaN counting as more than all."""
    return values.nan_to_num(torch.inf, torch.inf).median(0).values


def _rounded(values: Tensor) -> list[float]:
    return [float(f"{value:.4g}") for value in values.tolist()]

"""What is refused before a learner adapts to episodes."""

from functools import partial

import torch
from torch import Tensor

from metricopt.errors import ConfigError, LossError, ShapeError, require_kind
from metricopt.fewshot.episodes import Episodes
from metricopt.fewshot.examples import (
    are_classes,
    check_targets,
    tried_loss,
    tried_outputs,
)
from metricopt.fewshot.meta_learner import MetaLearner
from metricopt.process.seeding import globally_seeded


class EpisodeChecks:
    """Checks episodes, the first ones on the network too.

    Args:
        learner: the learner that adapts to them.
    """

    def __init__(self, learner: MetaLearner) -> None:
        self._learner = learner
        self._outputs: tuple[int, ...] | None = None
        self._ways: int | None = None

    def __call__(self, episodes: Episodes, count: int) -> Episodes:
        """Return as many episodes on the learner's device, if they can be used.

        Raises:
            ConfigError: if they are something else, the network or the loss raises, or
                episodes differ in the number of their classes; a LossError if the loss
                has no gradient.
            ShapeError: if the four tensors do not go together, targets that are numbers
                do not fit the outputs, or the loss is no scalar.
            DataError: if a target is no class, or the loss before any step is not
                finite.
        """
        expected = "what the function of numbers returns"
        require_kind(expected, episodes, Episodes, "Episodes(...)")
        for each in episodes.tensors():
            require_kind("each part of Episodes", each, Tensor, "a tensor")
        episodes = episodes.to(next(self._learner.parameters()).device)
        for name in ("support", "query"):
            _check_shapes(name, count, *getattr(episodes, name))
        if self._outputs is None:
            self._outputs = self._tried(episodes)
        for targets in (episodes.support_targets, episodes.query_targets):
            check_targets(targets.flatten(0, 1), self._outputs)
        if are_classes(episodes.support_targets[0]):
            self._check_ways(episodes)
        return episodes

    @torch.enable_grad()
    def _tried(self, episodes: Episodes) -> tuple[int, ...]:
        """Return the shape [...] of the outputs of one example; try the loss, too."""
        learner = self._learner
        support, query = next(episodes.one_by_one())
        # What the network draws here, the first iteration must not miss.
        with globally_seeded(0, support[0].device):
            phi_0 = learner.geometry(learner.z_0())
            predict = partial(learner.predict, phi_0)
            outputs, loss = tried_loss(predict, learner.loss, support)
            tried_outputs(predict, query[0])
        if not loss.requires_grad and any(
            each.requires_grad for each in phi_0.values()
        ):
            raise LossError(
                "the loss must depend on the weights, got one without a gradient: look "
                "for `detach`, `no_grad` or `argmax` in the network and the loss"
            )
        return tuple(outputs.shape[1:])

    def _check_ways(self, episodes: Episodes) -> None:
        ordered = episodes.support_targets.sort(1).values
        ways = ((ordered.diff(dim=1) != 0).sum(1) + 1).tolist()
        self._ways = self._ways or ways[0]
        other = next((found for found in ways if found != self._ways), None)
        if other is not None:
            raise ConfigError(
                f"every episode must have as many classes in its support: expected "
                f"{self._ways} as in the first one, got {other}"
            )


def _check_shapes(name: str, count: int, inputs: Tensor, targets: Tensor) -> None:
    fits = inputs.ndim >= 2 and inputs.shape[:2] == targets.shape[:2]
    if not fits or len(inputs) != count or not inputs.shape[1]:
        raise ShapeError(
            f"the {name} of {count} episodes needs inputs and targets [{count}, n, "
            f"...] with n >= 1, got {list(inputs.shape)} and {list(targets.shape)}"
        )

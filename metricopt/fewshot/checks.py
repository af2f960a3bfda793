"""What is refused before a learner adapts to episodes."""

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError, ShapeError, described, require_kind
from metricopt.fewshot.episodes import Episodes
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
            ConfigError: if they are something else, or episodes differ in the number
                of their classes.
            ShapeError: if the four tensors do not go together, targets that are numbers
                do not fit the outputs, or the loss is no scalar.
            DataError: if a target is no class, or the loss before any step is not
                finite.
        """
        expected = "what the function of numbers returns"
        require_kind(expected, episodes, Episodes, "Episodes(...)")
        episodes = episodes.to(next(self._learner.parameters()).device)
        for name in ("support", "query"):
            _check_shapes(name, count, *getattr(episodes, name))
        if self._outputs is None:
            self._outputs = self._tried(episodes)
        for targets in (episodes.support_targets, episodes.query_targets):
            _check_targets(targets, self._outputs)
        if _are_classes(episodes.support_targets):
            self._check_ways(episodes)
        return episodes

    @torch.no_grad()
    def _tried(self, episodes: Episodes) -> tuple[int, ...]:
        """Return the shape [...] of the outputs of one example; try the loss, too."""
        learner = self._learner
        (inputs, targets), _ = next(episodes.one_by_one())
        # What the network draws here, the first iteration must not miss.
        with globally_seeded(0, inputs.device):
            outputs = learner.predict(learner.geometry(learner.z_0()), inputs)
        shape = tuple(outputs.shape[1:])
        _check_targets(episodes.support_targets, shape)
        loss = learner.loss(outputs, targets)
        if not isinstance(loss, Tensor) or loss.ndim:
            raise ShapeError(f"the loss must be a scalar tensor, got {described(loss)}")
        if not bool(loss.isfinite()):
            raise DataError(
                f"the loss must be finite before any step, got {loss.item():g} on the "
                "first episode; look at its inputs and targets"
            )
        return shape

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


def _are_classes(targets: Tensor) -> bool:
    return targets.ndim == 2 and not targets.is_floating_point()


def _check_targets(targets: Tensor, outputs: tuple[int, ...]) -> None:
    """Check targets [B, n, ...] against the outputs of one example."""
    if _are_classes(targets):
        classes = outputs[0] if len(outputs) == 1 else 0
        low, high = (int(end) for end in targets.aminmax())
        if low < 0 or high >= max(classes, 2):
            raise DataError(
                f"targets must be classes in [0, {max(classes, 2) - 1}] for outputs "
                f"[n, {', '.join(map(str, outputs))}], got {low} to {high}"
            )
    elif targets.shape[2:] == () and outputs == (1,):
        # [n] against [n, 1] would be compared all with all.
        raise ShapeError(
            "targets of one output must have its shape [B, n, 1], got "
            f"{list(targets.shape)}"
        )

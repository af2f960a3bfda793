"""Meta-training: the loop over episodes that learns a start and a geometry.

Source: Zhang, Li, Giannakis, arXiv 2312.13486, "meta-level iteration". Differs: the
meta-gradient is clipped, and a step on one that is not finite is left out.
"""

import copy
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import nn

from metricopt.checkpoints.gradient_norms import GradientNorms
from metricopt.checkpoints.identity import identity_of
from metricopt.checkpoints.loop import run_to_end
from metricopt.checkpoints.state import digest_of, start_of
from metricopt.errors import ConfigError, described, require_kind
from metricopt.fewshot.adaptation import add_meta_gradient
from metricopt.fewshot.checks import EpisodeChecks
from metricopt.fewshot.episodes import Episodes, EpisodesOf
from metricopt.fewshot.meta_learner import MetaLearner
from metricopt.fewshot.settings import MetaTrained, MetaTraining
from metricopt.process.seeding import derive_seed, globally_seeded

Validate = Callable[[MetaLearner], float]
"""Scores a learner; higher is better."""


def meta_train(
    learner: MetaLearner,
    episodes: EpisodesOf,
    settings: MetaTraining | None = None,
    *,
    validate: Validate | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    show: bool = True,
) -> MetaTrained:
    """Train a learner in place, and leave it in evaluation mode.

    Iteration i takes the episodes of the numbers i B to i B + B - 1, and draws what is
    random in the network, such as dropout, from i. So a training that was killed and is
    called again ends with the same bits as one that was not.

    Args:
        learner: trained where it is: move it to a device before.
        episodes: from numbers to episodes; a number must always give the same one.
        settings: length, meta-optimizer and schedule.
        validate: scores the learner, in evaluation mode, on episodes not trained on;
            the state of the highest score is kept. Without it, the last one is.
        checkpoint: a file for the state, to go on from; removed by nobody.
        show: whether a terminal shows a bar with the time left.

    Returns:
        What happened: losses, meta-gradients, steps that were skipped.

    Raises:
        ConfigError: if nothing is to be learned, the checkpoint is of another
            training, a number does not always give the same episode although there is a
            checkpoint, episodes differ in the number of their classes, or `validate`
            returns no number.
        ShapeError: if episodes do not go with the network or the loss.
        DataError: if a target is no class, or the checkpoint is damaged.
        DivergedError: if the map overflows, or the meta-gradient is not finite over
            and over.
    """
    settings = MetaTraining() if settings is None else settings
    require_kind("learner", learner, MetaLearner, "a MetaLearner")
    require_kind("episodes", episodes, Callable, "a function from numbers to Episodes")
    require_kind("settings", settings, MetaTraining, "MetaTraining(...)")
    if validate is not None:
        require_kind("validate", validate, Callable, "a function from the learner")
    run = _Run(learner, episodes, settings, validate)
    run_to_end(run, checkpoint, show=show)
    return run.finish()


class _Run:
    """A meta-training between two iterations."""

    def __init__(
        self,
        learner: MetaLearner,
        episodes: EpisodesOf,
        settings: MetaTraining,
        score: Validate | None,
    ) -> None:
        self.learner, self.settings = learner, settings
        self.episodes, self.score = episodes, score
        weights = [each for each in learner.parameters() if each.requires_grad]
        if not weights:
            raise ConfigError(
                "a learner needs something to learn, but none of its weights requires "
                "a gradient, neither of the start nor of the map"
            )
        self.weights, self.optimizer = weights, settings.make_optimizer(learner)
        self.checks = EpisodeChecks(learner)
        self.first: Episodes | None = None
        self.done, self.seconds = 0, 0.0
        self.losses: list[float] = []
        self.norms = GradientNorms(settings.iterations)
        self.validations: dict[int, float] = {}
        self.best: dict[str, Any] | None = None
        self.kept = 0

    def key(self) -> str:
        """Return what tells this training from another, before its first iteration.

        Raises:
            ConfigError: if the same numbers give other episodes at a second call.
        """
        numbers = self.settings.numbers(0)
        first = digest_of(self._drawn(numbers).tensors())
        # Kept for the first iteration: drawing may be slow.
        self.first = self._drawn(numbers)
        if first != digest_of(self.first.tensors()):
            raise ConfigError(
                "the same number must always give the same episode, so that a training "
                "can go on, but the first ones differ between two calls: seed what "
                "draws an episode by its number"
            )
        settings = asdict(replace(self.settings, save_every=0.0))
        learner = self.learner
        loss = getattr(learner.loss, "__qualname__", type(learner.loss).__name__)
        inner = (learner.steps, learner.rate, learner.order, loss)
        kind, shapes = type(learner.geometry), [tuple(w.shape) for w in self.weights]
        own = f"inner {inner}, {kind.__name__}, shapes {shapes}"
        options = [identity_of(each) for each in (learner.geometry, learner.loss)]
        # What earlier versions did not know stands behind what they did.
        known = f"{settings}, {own}, episodes {first}, options {options}"
        weighted = identity_of(learner.loss, weights=True)
        known = f"{known}, start {start_of(learner)}, loss {weighted}"
        network, validated = _form_of(learner.network), self.score is not None
        return f"{known}, network {network}, validated {validated}"

    @property
    def trained(self) -> MetaLearner:
        """The learner."""
        return self.learner

    @property
    def said(self) -> str:
        """The last loss, the best score and what was skipped, in a few words."""
        score = self.validations.get(self.kept)
        parts = [f"loss {self.losses[-1]:.3g}"]
        parts += [] if score is None else [f"best {score:.4g}"]
        parts += [f"{len(self.norms.skipped)} skipped"] if self.norms.skipped else []
        return ", ".join(parts)

    def step(self) -> None:
        """Make one iteration, and validate if that is due."""
        self._descend()
        self.done += 1
        last = self.done == self.settings.iterations
        due = last or self.done % self.settings.validate_every == 0
        if self.score is not None and due:
            self._validate(self.score)

    def _descend(self) -> None:
        """Take the step of an iteration, unless its meta-gradient is not finite."""
        iteration, settings = self.done, self.settings
        device = self.weights[0].device
        self.learner.train()
        self.optimizer.zero_grad()
        batch, self.first = self.first, None
        if batch is None or iteration:
            batch = self._drawn(settings.numbers(iteration))
        with globally_seeded(derive_seed("meta-training", iteration), device):
            loss = add_meta_gradient(self.learner, batch, batching=settings.batching)
        self.losses.append(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.weights, settings.clip).item()
        advice = (
            f"the mean query loss there was {loss:g}; look for NaN in the episodes, or "
            "use a lower inner rate, fewer inner steps or a bounded scale"
        )
        if self.norms.allows_step(norm, iteration, advice):
            for group in self.optimizer.param_groups:
                group["lr"] = settings.rate_at(iteration) * group["factor"]
            self.optimizer.step()

    def _drawn(self, numbers: Sequence[int]) -> Episodes:
        return self.checks(self.episodes(numbers), len(numbers))

    def _validate(self, validate: Validate) -> None:
        """Score the learner, and keep its state if none before was better."""
        self.learner.eval()
        seed = derive_seed("validation", self.done)
        with globally_seeded(seed, self.weights[0].device):
            score = _number(validate(self.learner))
        # A score that is NaN is worse than any other.
        before = self.validations.get(self.kept, math.nan)
        if self.best is None or not (math.isnan(score) or score <= before):
            self.best = copy.deepcopy(self.learner.state_dict())
            self.kept = self.done
        self.validations[self.done] = score

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        norms = self.norms
        return {
            "learner": self.learner.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "lists": (self.losses, norms.every, norms.skipped, self.validations),
            "numbers": (self.done, self.kept, self.seconds),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.learner.load_state_dict(state["learner"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.best = state["best"]
        norms = self.norms
        self.losses, norms.every, norms.skipped, self.validations = state["lists"]
        self.done, self.kept, self.seconds = state["numbers"]

    def finish(self) -> MetaTrained:
        """Return to the best state, and say what happened."""
        if self.best is None:
            self.kept = self.done
        else:
            self.learner.load_state_dict(self.best)
        self.optimizer.zero_grad()
        self.learner.eval()
        self.norms.warn()
        return MetaTrained(
            tuple(self.losses),
            tuple(self.norms.every),
            tuple(self.norms.skipped),
            self.validations,
            self.kept,
            self.seconds,
        )


def _form_of(network: nn.Module) -> str:
    """Return what tells a network from one with other layers, or options of torch's.

    Attributes of modules of the user are none: they may be logs.
    """
    layers = [
        f"{name} {type(layer).__qualname__} {identity_of(layer) if own else ''}"
        for name, layer in network.named_modules()
        for own in [type(layer).__module__.startswith("torch.nn.")]
        if not (own and [*layer.children()])
    ]
    return identity_of(" ".join(layers))


def _number(score: Any) -> float:
    """Return what `validate` returned, if it is a number."""
    try:
        return float(score)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"validate must return a number, got {described(score)}"
        ) from error

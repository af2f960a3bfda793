"""Meta-training: the loop over episodes that learns a start and a geometry.

Source: Zhang, Li, Giannakis, arXiv 2312.13486, "meta-level iteration". Differs: the
meta-gradient is clipped, and a step on one that is not finite is left out.
"""

import copy
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch
from tqdm import tqdm

from metricopt.errors import ConfigError, DivergedError
from metricopt.fewshot.adaptation import add_meta_gradient
from metricopt.fewshot.checkpoint import digest_of, read_state, write_state
from metricopt.fewshot.checks import EpisodeChecks
from metricopt.fewshot.episodes import EpisodesOf
from metricopt.fewshot.meta_learner import MetaLearner
from metricopt.fewshot.settings import MetaTrained, MetaTraining
from metricopt.files import user_path
from metricopt.process.seeding import derive_seed, globally_seeded

MOST_SKIPPED = 100
"""Iterations in a row that may be skipped."""
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
        ConfigError: if the checkpoint is of another training, a number does not
            always give the same episode, or episodes differ in the number of their
            classes.
        ShapeError: if episodes do not go with the network or the loss.
        DataError: if a target is no class, or the checkpoint is damaged.
        DivergedError: if the map overflows, or the meta-gradient is not finite over
            and over.
    """
    run = _Run(learner, settings or MetaTraining())
    path = None if checkpoint is None else user_path(checkpoint)
    if path is not None:
        key = run.key(episodes)
        run.restore(read_state(path, key))
    total = run.settings.iterations
    saved = time.monotonic()
    with tqdm(
        total=total, initial=run.done, unit=" it", disable=None if show else True
    ) as bar:
        while run.done < total:
            began = time.monotonic()
            run.step(episodes)
            if validate is not None and run.validates:
                run.validate(validate)
            run.seconds += time.monotonic() - began
            bar.update()
            bar.set_postfix_str(run.said, refresh=False)
            late = time.monotonic() - saved >= run.settings.save_every
            if path is not None and (late or run.done == total):
                write_state(path, key, run.state())
                saved = time.monotonic()
    return run.finish()


class _Run:
    """A meta-training between two iterations."""

    def __init__(self, learner: MetaLearner, settings: MetaTraining) -> None:
        self.learner, self.settings = learner, settings
        weights = [each for each in learner.parameters() if each.requires_grad]
        self.weights, self.optimizer = weights, settings.make_optimizer(weights)
        self.checks = EpisodeChecks(learner)
        self.done, self.seconds = 0, 0.0
        self.losses: list[float] = []
        self.norms: list[float] = []
        self.skipped: list[int] = []
        self.validations: dict[int, float] = {}
        self.best: dict[str, Any] | None = None
        self.kept = 0

    def key(self, episodes: EpisodesOf) -> str:
        """Return what tells this training from another, before its first iteration.

        Raises:
            ConfigError: if the same numbers give other episodes at a second call.
        """
        learner, numbers = self.learner, self.settings.numbers(0)
        first, again = (
            digest_of(self.checks(episodes(numbers), len(numbers)).tensors())
            for _ in range(2)
        )
        if first != again:
            raise ConfigError(
                "the same number must always give the same episode, so that a training "
                "can go on, but the first ones differ between two calls: seed what "
                "draws an episode by its number"
            )
        settings = asdict(replace(self.settings, save_every=0.0))
        loss = getattr(learner.loss, "__qualname__", type(learner.loss).__name__)
        inner = (learner.steps, learner.rate, learner.order, loss)
        kind, shapes = type(learner.geometry), [tuple(w.shape) for w in self.weights]
        own = f"inner {inner}, {kind.__name__}, shapes {shapes}"
        return f"{settings}, {own}, episodes {first}"

    @property
    def validates(self) -> bool:
        """Whether a validation is due."""
        last = self.done == self.settings.iterations
        return last or self.done % self.settings.validate_every == 0

    @property
    def said(self) -> str:
        """The last loss, the best score and what was skipped, in a few words."""
        score = self.validations.get(self.kept)
        parts = [f"loss {self.losses[-1]:.3g}"]
        parts += [] if score is None else [f"best {score:.4g}"]
        parts += [f"{len(self.skipped)} skipped"] if self.skipped else []
        return ", ".join(parts)

    def step(self, episodes: EpisodesOf) -> None:
        """Take the step of one iteration, unless its meta-gradient is not finite."""
        iteration, settings = self.done, self.settings
        numbers = settings.numbers(iteration)
        device = self.weights[0].device
        self.learner.train()
        self.optimizer.zero_grad()
        batch = self.checks(episodes(numbers), len(numbers))
        with globally_seeded(derive_seed("meta-training", iteration), device):
            loss = add_meta_gradient(self.learner, batch, batching=settings.batching)
        self.losses.append(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.weights, settings.clip).item()
        self.norms.append(norm)
        if math.isfinite(norm):
            for group in self.optimizer.param_groups:
                group["lr"] = settings.rate_at(iteration)
            self.optimizer.step()
        else:
            self.skipped.append(iteration)
            self._check_skipped()
        self.done += 1

    def _check_skipped(self) -> None:
        most = min(MOST_SKIPPED, self.settings.iterations)
        if self.skipped[-most:] == list(range(self.done - most + 1, self.done + 1)):
            raise DivergedError(
                f"the meta-gradient was not finite in {most} iterations in a row, up "
                f"to {self.done}; the mean query loss there was {self.losses[-1]:g}: "
                "look for NaN in the episodes, or use a lower inner rate, fewer inner "
                "steps or a bounded scale"
            )

    def validate(self, validate: Validate) -> None:
        """Score the learner, and keep its state if none before was better."""
        self.learner.eval()
        seed = derive_seed("validation", self.done)
        with globally_seeded(seed, self.weights[0].device):
            score = float(validate(self.learner))
        # A score that is NaN is worse than any other.
        before = self.validations.get(self.kept, math.nan)
        if self.best is None or not (math.isnan(score) or score <= before):
            self.best = copy.deepcopy(self.learner.state_dict())
            self.kept = self.done
        self.validations[self.done] = score

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        return {
            "learner": self.learner.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "lists": (self.losses, self.norms, self.skipped, self.validations),
            "numbers": (self.done, self.kept, self.seconds),
        }

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go on from a state, if there is one."""
        if state is None:
            return
        self.learner.load_state_dict(state["learner"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.best = state["best"]
        self.losses, self.norms, self.skipped, self.validations = state["lists"]
        self.done, self.kept, self.seconds = state["numbers"]

    def finish(self) -> MetaTrained:
        """Return to the best state, and say what happened."""
        if self.best is None:
            self.kept = self.done
        else:
            self.learner.load_state_dict(self.best)
        self.optimizer.zero_grad()
        self.learner.eval()
        return MetaTrained(
            tuple(self.losses),
            tuple(self.norms),
            tuple(self.skipped),
            self.validations,
            self.kept,
            self.seconds,
        )

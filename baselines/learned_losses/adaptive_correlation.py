"""The loss of classes that ALA adapts: what a controller sees of pairs of classes."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from baselines.learned_losses.adaptive_loss import PAST, AdaptiveLoss, History
from baselines.learned_losses.class_correlation import (
    confusion,
    correlation_loss,
    log_probabilities,
    noisy_identity,
)

SURENESS = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99)
"""Where the parts end in which slopes are noted, probabilities of the true class."""
SPREAD = 1e-3
"""Least standard deviation of statistics, in units of chance, log C."""


class PairStates:
    """What the controller sees of each pair of classes i < j.

    The statistics of both directions over the last ten periods, their relative changes
    from their moving averages, Phi(i, j), and the share of the training that is done.
    The statistics are standardised over the pairs that are seen, if there are several.
    Otherwise what they share decides for all alike, and the policy collapses.

    Args:
        classes: number of classes C.

    Attributes:
        first, second: classes of each pair, shape [P].
        known: classes that the observe split has, shape [C].
    """

    def __init__(self, classes: int) -> None:
        self.first, self.second = torch.triu_indices(classes, classes, offset=1)
        self.known = torch.ones(classes, dtype=torch.bool)
        self._unit = math.log(classes)
        self.history = History()

    @property
    def seen(self) -> Tensor:
        """Pairs of two known classes, shape [P]."""
        return self.known[self.first] & self.known[self.second]

    def observe(self, confusions: Tensor) -> None:
        """Take note of the confusions of k networks, shape [k, C, C], NaN as 0."""
        self.known = ~confusions[0, :, 0].isnan()
        self.history.observe(confusions / self._unit)

    def states(self, phi: Tensor, done: float) -> Tensor:
        """Return the states of the P pairs, shape [k, P, 24].

        Args:
            phi: loss parameters, shape [k, C, C].
            done: share of the training that is over, in [0, 1].
        """
        past, change = self.history.past, self.history.change
        i, j = self.first, self.second
        own = phi[:, i, j, None]
        first, second = self._standardised(torch.stack([past[:, i, j], past[:, j, i]]))
        return torch.cat(
            [
                first,
                second,
                change[:, i, j, None].clamp(-1, 1),
                change[:, j, i, None].clamp(-1, 1),
                own,
                torch.full_like(own, done),
            ],
            -1,
        )

    def _standardised(self, both: Tensor) -> Tensor:
        """Return statistics of both directions, shape [2, k, P, 10], standardised."""
        seen = both[:, :, self.seen]
        if seen.shape[2] < 2:
            return both
        centre, spread = seen.mean((0, 2)), seen.std((0, 2)).clamp(min=SPREAD)
        return (both - centre[:, None]) / spread[:, None]


class AdaptiveCorrelation(AdaptiveLoss):
    """The loss of `class_correlation`; an action moves both directions of a pair.

    Actions leave parameters of the true class alone, which would change the rate, and
    pairs with a class that the observe split lacks.

    Args:
        classes: number of classes C.
        literal: whether it is eq. 6 as it is printed.
    """

    features = 2 * PAST + 4
    noted = "phi"

    def __init__(self, classes: int, *, literal: bool = False) -> None:
        self.classes, self.literal = classes, literal
        self.pairs = PairStates(classes)
        self._confusions: Tensor | None = None

    def start(self, count: int, noise: float, generator: torch.Generator) -> Tensor:
        """Return the identity of every network, shape [k, C, C]; see `AdaptiveLoss`."""
        return noisy_identity(count, self.classes, noise, generator)

    def loss(self, outputs: Tensor, targets: Tensor, phi: Tensor) -> Tensor:
        """Return the loss of every network, shape [k]; see `AdaptiveLoss`."""
        log_p = log_probabilities(outputs).transpose(0, 1)
        return correlation_loss(log_p, targets, phi, literal=self.literal)

    def slopes(self, outputs: Tensor, targets: Tensor, phi: Tensor) -> Tensor:
        """Return how steep the loss is where the network is sure, and where not.

        Args:
            outputs: of k networks, shape [k, N, C].
            targets: labels, shape [N].
            phi: loss parameters, shape [k, C, C].

        Returns:
            For the examples in each part of `SURENESS`, by their probability p of the
            true class: the mean slope with respect to its logit, 1 - p for
            cross-entropy, and the share of examples; 0 for none. Flat, 2 numbers a
            part.
        """
        given = outputs.detach().transpose(0, 1).requires_grad_()
        total = self.loss(given, targets, phi).sum() * len(targets)
        (gradient,) = torch.autograd.grad(total, given)
        places = targets.long()[:, None, None].expand(-1, given.shape[1], 1)
        slopes = -gradient.gather(-1, places).flatten()
        p = log_probabilities(given.detach()).exp().gather(-1, places).flatten()
        part = torch.bucketize(p, torch.tensor(SURENESS).to(p))
        own = functional.one_hot(part, len(SURENESS) + 1).to(slopes)
        count = own.sum(0)
        means = own.T @ slopes / count.clamp(min=1)
        return torch.stack([means, count / len(slopes)], -1).flatten()

    def observe(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Take note of the confusions, and return the pairs that are seen, [P]."""
        self._confusions = confusion(log_probabilities(outputs).cpu(), targets.cpu())
        self.pairs.observe(self._confusions)
        return self.pairs.seen

    def states(self, phi: Tensor, done: float) -> Tensor:
        """Return the states of the pairs, shape [k, P, 24]; see `AdaptiveLoss`."""
        return self.pairs.states(phi, done)

    def moved(self, phi: Tensor, changes: Tensor) -> Tensor:
        """Return the loss parameters after changes [k, P], symmetric, in [-1, 1]."""
        first, second = self.pairs.first, self.pairs.second
        found = phi.clone()
        value = phi[:, first, second] + changes
        found[:, first, second] = value
        found[:, second, first] = value
        return found.clamp(-1, 1)

    def followed(self, phi: Tensor) -> Tensor:
        """Return eq. 7 in units of log C, at most 1; of classes not seen phi."""
        assert self._confusions is not None
        scaled = (self._confusions / math.log(self.classes)).clamp(max=1)
        return scaled.where(self.pairs.known[:, None], phi)

    def state(self) -> dict[str, Any]:
        """Return what was observed, for checkpoints."""
        return self.pairs.history.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.pairs.history.restore(state)

"""The portfolio: losses that phi is fine-tuned with at no query, and how they are made.

Each gives a line of candidates. Which of them is good for a metric, a query says, or a
value function before it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import relu, softplus

from metricopt.errors import ConfigError, ShapeError
from metricopt.losses.contract import Loss, LossProperties, RowLoss
from metricopt.reading.outputs import class_logits
from metricopt.registry import Registry


class ShiftedCrossEntropy(RowLoss):
    """Class-weighted cross-entropy of outputs + shift.

    With a shift of tau log prior it is the prior-adjusted loss: outputs are trained to
    be right without the prior that the shift adds.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        shift: added to the logits of the K = max(C, 2) classes, shape [K].
        weights: weights of the classes, > 0, shape [K]; None weighs all alike.

    Raises:
        ShapeError: if shift or weights are not [K].

    Source: Menon et al., ICLR 2021, eq. (9), for the shift.
    """

    def __init__(
        self, classes: int, *, shift: Tensor, weights: Tensor | None = None
    ) -> None:
        super().__init__(classes)
        self.weights = torch.ones_like(shift) if weights is None else weights
        self.shift = shift
        expected = [max(classes, 2)]
        for name, given in (("shift", shift), ("weights", self.weights)):
            if list(given.shape) != expected:
                raise ShapeError(
                    f"{name} must have shape {expected}, got {list(given.shape)}"
                )

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        logits = class_logits(outputs) + self.shift.to(outputs)
        losses = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), reduction="none"
        ).view_as(targets)
        weights = self.weights.to(outputs)[targets]
        return (weights * losses).sum(1) / weights.sum(1)


SURROGATES = {
    "hinge": lambda difference: relu(1 - difference),
    "squared-hinge": lambda difference: relu(1 - difference).square(),
    "logistic": lambda difference: softplus(-difference),
}


class PairwiseAUCROC(RowLoss):
    """Mean surrogate of s_i - s_j over pairs of a positive i and a negative j.

    Every class is ranked against the rest by its logit. The loss is the mean over the
    classes that have positives and negatives in the mini-batch; if there is no such
    class, it is 0, with gradient 0.

    Args:
        classes: number of classes C; 1 is one logit of the positive class.
        surrogate: "hinge" (margin 1), "squared-hinge" or "logistic".

    Raises:
        ConfigError: if the surrogate is none of these.

    Source: Rakotomamonjy, 2004. Differs: trained by mini-batches, one versus rest for
    many classes; the norm of the weights is left to weight decay.
    """

    properties = LossProperties(independent=True, needs_every_class=True)

    def __init__(self, classes: int, *, surrogate: str = "hinge") -> None:
        super().__init__(classes)
        if surrogate not in SURROGATES:
            raise ConfigError(
                f"surrogate must be one of {', '.join(SURROGATES)}, got {surrogate!r}"
            )
        self.surrogate = surrogate

    def _row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        # An example is a positive of its own class only: n^2 pairs instead of C n^2.
        binary = self.classes == 1
        column = torch.zeros_like(targets) if binary else targets
        scores = outputs.transpose(1, 2).gather(
            1, column[..., None].expand(-1, -1, targets.shape[1])
        )
        own = scores.diagonal(dim1=1, dim2=2)
        pairs = targets[:, :, None] != targets[:, None, :]
        terms = SURROGATES[self.surrogate](own[..., None] - scores) * pairs
        negatives = pairs.sum(2)
        positives = targets.shape[1] - negatives
        anchors = negatives > 0
        if binary:
            anchors &= targets == 1
        # The positives of a class share a weight of 1: all weights add up to the number
        # of classes.
        weights = anchors.to(outputs.dtype) / positives
        means = terms.sum(2) / negatives.clamp(min=1)
        # Apart from rounding, the sum is 0 or at least 1.
        return (weights * means).sum(1) / weights.sum(1).clamp(min=0.5)


TAUS = (-1.0, 0.5, 1.0, 1.5, 2.0)
"""Strengths of prior adjustment."""
STRENGTHS = (3.0, 6.0)
"""Strengths of class weights."""
UNEQUAL = 0.05
"""Greatest log ratio of class shares that still count as equal."""
SHARPNESS = 4.0
LEAST = 1e-6


@dataclass(frozen=True)
class LossFacts:
    """What losses of a portfolio may be made from; none of it costs a query.

    Attributes:
        outputs: number of outputs C; 1 is one logit of the positive class.
        sampled: shares of the K = max(C, 2) classes in mini-batches, shape [K].
        observed: their shares on the observe split, shape [K].
        recalls: recalls of the untouched network on the observe split, shape [K].
        batch_size: examples of a mini-batch.
    """

    outputs: int
    sampled: Tensor
    observed: Tensor
    recalls: Tensor
    batch_size: int


Portfolio = dict[str, Loss]
"""Losses by name."""
PORTFOLIO: Registry[Callable[[LossFacts], Portfolio]] = Registry(
    "loss of the portfolio", "metricopt.losses"
)
"""Makers of losses; a maker returns none where its losses make no sense."""


def make_portfolio(facts: LossFacts) -> Portfolio:
    """Return the losses of all registered makers, by name."""
    return {
        name: loss
        for maker in PORTFOLIO
        for name, loss in PORTFOLIO.get(maker)(facts).items()
    }


@PORTFOLIO.register("prior-adjusted")
def prior_adjusted(facts: LossFacts) -> Portfolio:
    """Return cross-entropy of outputs + tau log prior, at several strengths.

    The prior is that of the mini-batches over that of the observe split: at tau = 1
    the network is corrected for the difference. Where they agree, it is the inverse of
    the prior itself, which moves decisions from common to rare classes.
    """
    ratio = _log(facts.sampled) - _log(facts.observed)
    if _is_flat(ratio):
        ratio = _log(facts.observed)
    if _is_flat(ratio):
        return {}
    return {
        f"prior-adjusted, tau = {tau:g}": ShiftedCrossEntropy(
            facts.outputs, shift=tau * ratio
        )
        for tau in TAUS
    }


@PORTFOLIO.register("class-weighted")
def class_weighted(facts: LossFacts) -> Portfolio:
    """Return cross-entropy that weighs a class the more, the more of it is missed.

    The weights are exp(strength z / 4), where z is the standardised error of a class.
    """
    errors = 1 - facts.recalls
    spread = errors.std()
    if not spread > 0:
        return {}
    standardised = (errors - errors.mean()) / spread
    return {
        f"class-weighted, strength {strength:g}": ShiftedCrossEntropy(
            facts.outputs,
            shift=torch.zeros_like(errors),
            weights=(strength * standardised / SHARPNESS).exp(),
        )
        for strength in STRENGTHS
    }


@PORTFOLIO.register("pairwise-aucroc")
def pairwise_aucroc(facts: LossFacts) -> Portfolio:
    """Return the loss that ranks each class against the rest."""
    return {"pairwise AUC-ROC": PairwiseAUCROC(facts.outputs)}


@PORTFOLIO.register("cross-entropy")
def cross_entropy(facts: LossFacts) -> Portfolio:
    """Return plain cross-entropy."""
    shift = torch.zeros_like(facts.observed)
    return {"cross-entropy": ShiftedCrossEntropy(facts.outputs, shift=shift)}


def _log(shares: Tensor) -> Tensor:
    return shares.clamp_min(LEAST).log()


def _is_flat(logs: Tensor) -> bool:
    return bool(logs.max() - logs.min() <= UNEQUAL)

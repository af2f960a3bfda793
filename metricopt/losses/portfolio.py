"""The portfolio: losses that phi is fine-tuned with at no query, and how they are made.

Each gives a line of candidates. Which of them is good for a metric, a query says, or a
value function before it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.losses.contract import Loss
from metricopt.losses.pairwise_aucroc import PairwiseAUCROC
from metricopt.losses.shifted_cross_entropy import ShiftedCrossEntropy
from metricopt.registry import Registry

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

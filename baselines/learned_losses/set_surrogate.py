"""The surrogate, a network that imitates a metric on sets, and the sets it learns from.

Source: Grabocka, Scholz and Schmidt-Thieme, 2019. `learned_surrogate` says what was
decided where the paper leaves something open.
"""

import math

import torch
from torch import Tensor, nn

from baselines.validation import Validation
from metricopt.ranking import rank_correlation


class SetSurrogate(nn.Module):
    """Predicts the metric's cost of a set of labels and predicted probabilities.

    g(mean over the set of h(y, p)): the order of the examples does not matter, and
    their number may vary.

    Args:
        width: hidden units of h and of g.
    """

    def __init__(self, width: int = 30) -> None:
        super().__init__()
        self.h = nn.Sequential(
            nn.Linear(2, width), nn.LeakyReLU(), nn.Linear(width, width), nn.LeakyReLU()
        )
        self.g = nn.Sequential(
            nn.Linear(width, width), nn.LeakyReLU(), nn.Linear(width, 1), nn.Sigmoid()
        )

    def forward(self, labels: Tensor, probabilities: Tensor) -> Tensor:
        """Return the predicted cost of each set, shape [R], in (0, 1).

        Args:
            labels: 0 or 1, shape [n] or [R, n].
            probabilities: predictions for them, shape [R, n], in [0, 1].
        """
        pairs = torch.stack([labels.expand_as(probabilities), probabilities], dim=-1)
        costs: Tensor = self.g(self.h(pairs).mean(-2))[..., 0]
        return costs


def enrich(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Return sets from good to bad, so that the surrogate sees the metric's range.

    Randomness is torch's global generator.

    Args:
        labels: 0 or 1, shape [n].
        probabilities: predictions for them, shape [n], in [0, 1].

    Returns:
        Three sets, shape [3, n], in [0, 1]: the predictions; the predictions mixed with
        the labels; the predictions mixed with labels, a random share of them flipped.
        All shares are uniform.
    """
    share, *weights = torch.rand(3).tolist()
    flipped = torch.where(torch.rand_like(probabilities) < share, 1 - labels, labels)
    aims = torch.stack([labels, flipped])
    mixed = torch.lerp(probabilities, aims, aims.new_tensor(weights)[:, None])
    return torch.cat([probabilities[None], mixed])


def metric_costs(
    validation: Validation, probabilities: Tensor, targets: Tensor
) -> Tensor:
    """Return the metric's cost of every set, shape [R]: one query each.

    Args:
        validation: counts the queries. The metric sees logits, so that probability 0.5
            is positive.
        probabilities: predictions, shape [R, n], in [0, 1].
        targets: labels, shape [n], integers in {0, 1}.
    """
    logits = probabilities.logit(eps=1e-6)[..., None]
    return validation.costs(logits, targets).to(probabilities)


def agreement(first: Tensor, second: Tensor) -> float:
    """Return Spearman's correlation, in [-1, 1]; 0 where either is constant."""
    found = rank_correlation(first.flatten(), second.flatten())
    return 0.0 if math.isnan(found) else found

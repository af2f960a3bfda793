"""The network that imitates a metric on sets, and the sets it is taught on.

Source: Grabocka, Scholz and Schmidt-Thieme, 2019; see `baselines.learned_surrogate` for
what was decided where the paper is silent.
"""

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn

from metricopt.metrics.base import Metric, to_cost


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
        return self.g(self.h(pairs).mean(-2))[..., 0]


def enrich(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Return sets from good to bad, so that the surrogate sees the metric's range.

    Randomness is torch's global generator.

    Args:
        labels: 0 or 1, shape [n].
        probabilities: predictions for them, shape [n], in [0, 1].

    Returns:
        The predictions; mixed with the labels; mixed with labels of which a random
        share is flipped: shape [3, n], in [0, 1]. The coefficients are uniform.
    """
    share, *weights = torch.rand(3).tolist()
    flipped = torch.where(torch.rand_like(probabilities) < share, 1 - labels, labels)
    aims = torch.stack([labels, flipped])
    mixed = torch.lerp(probabilities, aims, aims.new_tensor(weights)[:, None])
    return torch.cat([probabilities[None], mixed])


def metric_costs(metric: Metric, probabilities: Tensor, targets: Tensor) -> Tensor:
    """Return the metric's cost of every set, shape [R]: one query each.

    Args:
        metric: the black box; sees logits, so that probability 0.5 is positive.
        probabilities: predictions, shape [R, n], in [0, 1].
        targets: labels, shape [n], integers in {0, 1}.
    """
    logits = probabilities.logit(eps=1e-6)[..., None]
    return to_cost(metric, metric.values(logits, targets)).to(probabilities)


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Return Spearman's correlation, in [-1, 1]; 0 where either is constant."""
    ranks = np.stack([rankdata(part.flatten().numpy()) for part in (first, second)])
    if (np.ptp(ranks, axis=1) == 0).any():
        return 0.0
    return float(np.corrcoef(ranks)[0, 1])

"""Retrieval metrics: the embedding is judged by the labels of its neighbours."""

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric
from metricopt.reading.outputs import Outputs


def hits(outputs: Outputs, targets: Tensor, k: int) -> Tensor:
    """Whether the k nearest neighbours, by cosine, have an example's label, [N, k].

    Args:
        outputs: (logits, embedding).
        targets: labels, shape [N].
        k: number of neighbours; of fewer others, all are taken.
    """
    _, embedding = outputs
    unit = torch.nn.functional.normalize(embedding, dim=1)
    likeness = (unit @ unit.T).fill_diagonal_(-torch.inf)
    nearest = likeness.topk(min(k, len(targets) - 1), dim=1).indices
    return targets[nearest] == targets[:, None]


class RecallAtOne(Metric):
    """Share of examples whose nearest neighbour has their label, in [0, 1]."""

    name = "recall-at-1"
    higher_is_better = True
    takes_tuples = True

    def _value(self, outputs: Outputs, targets: Tensor) -> float:
        return float(hits(outputs, targets, 1).double().mean())


class FirstHitRank(Metric):
    """Mean rank of the first of k neighbours with the label of the example.

    Ranks are from 1; k + 1 where no neighbour has the label.

    Args:
        k: number of neighbours, at least 1.
    """

    higher_is_better = False
    unit = "rank"
    low = 1.0
    takes_tuples = True

    def __init__(self, k: int) -> None:
        if k < 1:
            raise ConfigError(f"first-hit-rank needs k >= 1, got {k}")
        self.k = k
        self.name = f"first-hit-rank-{k}"
        self.high = k + 1.0

    def _value(self, outputs: Outputs, targets: Tensor) -> float:
        found = hits(outputs, targets, self.k)
        last = torch.ones(len(found), 1, dtype=torch.bool)
        # The first of equal maxima: of the hits, or of a hit behind the last neighbour.
        first = torch.cat([found, last], dim=1).int().argmax(1)
        return float(1 + first.double().mean())

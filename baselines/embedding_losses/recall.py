"""Recall loss by black-box differentiation: every image is a query over the others."""

import torch
from torch import Tensor

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, EmbeddingLoss
from baselines.losses.blackbox_ranking import recall_loss
from metricopt.errors import require_ranges


@EMBEDDING_LOSSES.register("recall")
class Recall(EmbeddingLoss):
    """Mean weight of the number x of other classes' images ahead of a positive.

    The weight is log(1 + log(1 + x)). Images are ranked by their cosine with the query.
    The gallery of a query is the rest of the mini-batch.

    Args:
        classes: number of training classes; not used.
        size: length of an embedding, E.
        lam: strength of the interpolation, above 0, see `blackbox_ranking.rank`.
        margin: in cosine, by how much a positive has to be ahead.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Rolinek et al., CVPR 2020, sec. 4, with the values for Stanford Online
    Products. Differs: see `blackbox_ranking`; theirs remembers three mini-batches.
    """

    def __init__(
        self, classes: int, size: int, *, lam: float = 4.0, margin: float = 0.02
    ) -> None:
        super().__init__(classes, size)
        self.lam, self.margin = lam, margin
        require_ranges("recall", vars(self), lam="> 0")

    def _loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        scores = _without_self(embeddings @ embeddings.T)
        relevant = _without_self(targets[:, None] == targets)
        return recall_loss(scores, relevant, margin=self.margin, lam=self.lam)


def _without_self(pairs: Tensor) -> Tensor:
    """Return an n x n matrix without its diagonal, shape [n, n - 1]."""
    count = len(pairs)
    others = ~torch.eye(count, dtype=torch.bool, device=pairs.device)
    return pairs[others].view(count, count - 1)

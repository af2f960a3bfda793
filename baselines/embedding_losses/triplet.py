"""Triplet loss with semi-hard negatives."""

from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.miners import TripletMarginMiner
from pytorch_metric_learning.reducers import MeanReducer
from torch import Tensor

from baselines.embedding_losses.contract import (
    EMBEDDING_LOSSES,
    EmbeddingLoss,
    Triplets,
)
from metricopt.errors import require_ranges


@EMBEDDING_LOSSES.register("triplet")
class Triplet(EmbeddingLoss):
    """Mean of max(0, D+ - D- + margin) over the semi-hard triplets; D are squared.

    A triplet is semi-hard if the negative is farther away than the positive, but by no
    more than the margin: D+ < D- <= D+ + margin. Memory grows with n^3.

    Args:
        classes: number of training classes; not used.
        size: length of an embedding, E.
        margin: in squared distance, above 0.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Schroff et al., CVPR 2015, eq. (1) to (4), by pytorch-metric-learning.
    Differs: all semi-hard triplets of a mini-batch count, not one for each pair.
    """

    def __init__(self, classes: int, size: int, *, margin: float = 0.2) -> None:
        super().__init__(classes, size)
        require_ranges("triplet", {"margin": margin}, margin="> 0")
        squared = LpDistance(power=2)
        self._mine = TripletMarginMiner(margin, "semihard", distance=squared)
        # The mined triplets all violate the margin: a mean over them is meant.
        self._triplet = TripletMarginLoss(
            margin, distance=squared, reducer=MeanReducer()
        )

    def of_triplets(self, embeddings: Tensor, triplets: Triplets) -> Tensor:
        """Return the mean over the given triplets of embeddings [n, E], a scalar."""
        return self._triplet(embeddings, indices_tuple=triplets)

    def triplets(self, embeddings: Tensor, targets: Tensor) -> Triplets:
        """Return the semi-hard triplets of embeddings of unit length, shape [n, E]."""
        found: Triplets = self._mine(embeddings, targets)
        return found

    def _loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        return self.of_triplets(embeddings, self.triplets(embeddings, targets))

"""Margin loss with distance-weighted sampling of negatives."""

from pytorch_metric_learning.losses import MarginLoss
from torch import Tensor

from baselines.embedding_losses.contract import (
    EMBEDDING_LOSSES,
    EmbeddingLoss,
    Triplets,
)
from baselines.embedding_losses.distance_weighted import draw_triplets
from metricopt.errors import DataError, require_ranges
from metricopt.process.seeding import make_generator


@EMBEDDING_LOSSES.register("margin")
class Margin(EmbeddingLoss):
    """Positives nearer than beta - alpha, negatives farther than beta + alpha.

    A triplet costs max(0, d+ - beta + alpha) + max(0, beta - d- + alpha). The sum is
    divided by the number of terms above 0. Every class learns a beta of its own, which
    its anchors use.

    Negatives are drawn, see `distance_weighted`. The draw is seeded by the targets of
    the mini-batch: equal calls give equal losses, in a continued training as well.

    Args:
        classes: number of training classes; targets are less than this.
        size: length of an embedding, E.
        alpha: margin on both sides of beta, in distance, above 0.
        beta: first value of every beta, in distance.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Wu et al., ICCV 2017, sec. 4.2, by pytorch-metric-learning. Differs: beta
    has no regulariser, as in the authors' example, but the rate of the network.
    """

    def __init__(
        self, classes: int, size: int, *, alpha: float = 0.2, beta: float = 1.2
    ) -> None:
        super().__init__(classes, size)
        require_ranges("margin", {"alpha": alpha}, alpha="> 0")
        self._margin = MarginLoss(
            alpha, beta=beta, learn_beta=True, num_classes=classes
        )

    @property
    def beta(self) -> Tensor:
        """The boundary between positives and negatives of every class, shape [C]."""
        return self._margin.beta

    def of_triplets(
        self, embeddings: Tensor, targets: Tensor, triplets: Triplets
    ) -> Tensor:
        """Return the loss of given triplets of embeddings [n, E], a scalar."""
        return self._margin(embeddings, targets, triplets)

    def triplets(self, embeddings: Tensor, targets: Tensor) -> Triplets:
        """Return the triplets drawn from embeddings of unit length, shape [n, E]."""
        generator = make_generator("distance-weighted", *targets.tolist())
        return draw_triplets(embeddings, targets, generator)

    def _loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        if targets.max() >= self.classes:
            raise DataError(
                f"margin with classes={self.classes} needs targets below that, got "
                f"{targets.max().item()}"
            )
        triplets = self.triplets(embeddings, targets)
        return self.of_triplets(embeddings, targets, triplets)

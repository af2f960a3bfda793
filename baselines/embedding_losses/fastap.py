"""FastAP: average precision of distances counted in soft bins."""

from pytorch_metric_learning.losses import FastAPLoss
from torch import Tensor

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, EmbeddingLoss
from metricopt.errors import require_ranges


@EMBEDDING_LOSSES.register("fastap")
class FastAP(EmbeddingLoss):
    """One minus the mean average precision of anchors that have a positive.

    Squared distances, in [0, 4], fall into triangular bins. With h+ the positives and
    h all examples of a bin, H+ and H their running sums, and N+ the positives of an
    anchor, its average precision is sum h+ H+ / H / N+.

    Args:
        classes: number of training classes; not used.
        size: length of an embedding, E.
        bins: number of bins, at least 1.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Cakir et al., CVPR 2019, by pytorch-metric-learning. Differs: the authors'
    own backward pass is this gradient times half the number of anchors.
    """

    def __init__(self, classes: int, size: int, *, bins: int = 10) -> None:
        super().__init__(classes, size)
        require_ranges("fastap", {"bins": bins}, bins=">= 1")
        self._fastap = FastAPLoss(num_bins=bins)

    def _loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        return self._fastap(embeddings, targets)

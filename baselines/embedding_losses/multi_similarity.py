"""Multi-similarity loss: the hard pairs of a mini-batch, weighted by each other."""

from pytorch_metric_learning.losses import MultiSimilarityLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from torch import Tensor

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, EmbeddingLoss
from metricopt.errors import require_ranges


@EMBEDDING_LOSSES.register("multi-similarity")
class MultiSimilarity(EmbeddingLoss):
    """Mean over anchors of two soft maxima over their mined pairs of cosines S.

    An anchor costs log(1 + sum exp(-alpha (S+ - base))) / alpha + log(1 + sum exp(beta
    (S- - base))) / beta. A positive is mined if S+ - epsilon is below the largest S-, a
    negative if S- + epsilon is above the smallest S+.

    Args:
        classes: number of training classes; not used.
        size: length of an embedding, E.
        alpha: sharpness of the maximum over positives, above 0.
        beta: sharpness of the maximum over negatives, above 0.
        base: cosine that positives should exceed and negatives should not.
        epsilon: margin of the mining.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Wang et al., CVPR 2019, eq. (10) to (15), by pytorch-metric-learning.
    Differs: nothing.
    """

    def __init__(
        self,
        classes: int,
        size: int,
        *,
        alpha: float = 2.0,
        beta: float = 50.0,
        base: float = 0.5,
        epsilon: float = 0.1,
    ) -> None:
        super().__init__(classes, size)
        sharpness = {"alpha": alpha, "beta": beta}
        require_ranges("multi-similarity", sharpness, alpha="> 0", beta="> 0")
        self._mine = MultiSimilarityMiner(epsilon)
        self._similarity = MultiSimilarityLoss(alpha, beta, base)

    def _loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        pairs = self._mine(embeddings, targets)
        return self._similarity(embeddings, targets, pairs)

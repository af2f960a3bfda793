"""Recall@k: whether one of the k nearest neighbours is of the same class."""

from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS
from metricopt.metrics.neighbours import Neighbours
from metricopt.metrics.retrieval.embedding_metric import EmbeddingMetric


@METRICS.register("recall")
class Recall(EmbeddingMetric):
    """Share of queries with an example of their own class among the k nearest.

    In [0, 1]. This is the recall of image retrieval (Oh Song et al., CVPR 2016), not
    that of a class, which is its share of examples that are predicted correctly.

    Args:
        k: number of neighbours, from 1 to the size of the gallery, N - 1.

    Raises:
        ConfigError: if k is less than 1.
    """

    def __init__(self, k: int = 1) -> None:
        if k < 1:
            raise ConfigError(f"recall needs k >= 1, got {k}")
        self.k = self.gallery = k
        self.name = f"recall@{k}"

    def _figure(self, neighbours: Neighbours) -> float:
        return neighbours.recall(self.k)


@METRICS.register("recall@1")
class Recall1(Recall):
    """Share of queries whose nearest neighbour is of their own class."""

    def __init__(self) -> None:
        super().__init__(1)


@METRICS.register("recall@10")
class Recall10(Recall):
    """Share of queries with their own class among the 10 nearest."""

    def __init__(self) -> None:
        super().__init__(10)


@METRICS.register("recall@100")
class Recall100(Recall):
    """Share of queries with their own class among the 100 nearest."""

    def __init__(self) -> None:
        super().__init__(100)


@METRICS.register("recall@1000")
class Recall1000(Recall):
    """Share of queries with their own class among the 1,000 nearest."""

    def __init__(self) -> None:
        super().__init__(1000)

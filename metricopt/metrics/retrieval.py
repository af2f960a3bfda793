"""Metrics of retrieval: what every query finds among its nearest neighbours."""

from metricopt.errors import ConfigError
from metricopt.metrics.base import METRICS, Metric
from metricopt.metrics.neighbours import EmbeddingMetric, Neighbours


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


CUTS = (1, 10, 100, 1000)


@METRICS.register("mean-recall")
class MeanRecall(EmbeddingMetric):
    """Plain mean of Recall@k over k = 1, 10, 100 and 1,000, in [0, 1].

    Only over those k that are less than the gallery, N - 1: Recall@k of the whole
    gallery is always 1.
    """

    name = "mean-recall"
    gallery = 2

    def _figure(self, neighbours: Neighbours) -> float:
        gallery = len(neighbours.nearest_rank) - 1
        recalls = [neighbours.recall(k) for k in CUTS if k < gallery]
        return sum(recalls) / len(recalls)


@METRICS.register("map@r")
class MeanAveragePrecisionAtR(EmbeddingMetric):
    """Mean over queries of 1/R sum_{i=1}^R P(i), in [0, 1].

    R is the number of other examples of the query's class; P(i) is the precision among
    the i nearest neighbours if the i-th is of that class, and else 0.

    Source: Musgrave et al., "A Metric Learning Reality Check", ECCV 2020.
    """

    name = "map@r"

    def _figure(self, neighbours: Neighbours) -> float:
        return float(neighbours.precision.mean())


OF_LABELS = (
    "for the recall of labels, pass 'recall_macro', 'recall_micro' or "
    "'recall_weighted', or sklearn.metrics.recall_score for two classes"
)
OF_ALL_CLASSES = (
    "for the mean of the recalls of all classes, pass 'balanced_accuracy' or "
    "'recall_macro'"
)


def meant_for_labels(metric: Metric) -> str:
    """Return what to do if labels were meant; "" unless the name may mean them.

    scikit-learn has a scorer `recall`, which here is short for `recall@1`. A mean
    recall is often one over classes; here `mean-recall` is one over neighbours.
    """
    if type(metric) is Recall and metric.k == 1:
        return OF_LABELS
    return OF_ALL_CLASSES if type(metric) is MeanRecall else ""

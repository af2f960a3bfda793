"""Mean average precision at R."""

from metricopt.metrics.base import METRICS
from metricopt.metrics.neighbours import Neighbours
from metricopt.metrics.retrieval.embedding_metric import EmbeddingMetric


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

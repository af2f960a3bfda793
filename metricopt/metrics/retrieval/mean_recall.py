"""Mean of Recall@k over the k of Stanford Online Products."""

from metricopt.metrics.base import METRICS
from metricopt.metrics.neighbours import Neighbours
from metricopt.metrics.retrieval.embedding_metric import EmbeddingMetric

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

"""What metrics of embeddings have in common: the neighbours, found once for all."""

from abc import abstractmethod

import torch
from torch import Tensor

from metricopt.errors import DataError
from metricopt.metrics.base import Metric
from metricopt.metrics.neighbours import Neighbours, ranks_of


class EmbeddingMetric(Metric):
    """A metric of embeddings [N, E]: every example a query, all others its gallery.

    Embeddings are compared by cosine, exactly. Several metrics of the same outputs in a
    row cost little more than one of them, see `ranks_of`; ties: see `Neighbours`.

    Attributes:
        gallery: least number of examples to find neighbours among, N - 1.

    Raises:
        DataError: by `value` and `values`, if the gallery is smaller, a class has one
            example only, or labels are not integers.
        MetricError: by these, if an embedding is zero or not finite.
    """

    higher_is_better = True
    needs_two_classes = True
    reads = "embeddings"
    gallery: int = 1

    @abstractmethod
    def _figure(self, neighbours: Neighbours) -> float:
        """Return the metric of what every query finds."""

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        (found,) = self._neighbours(outputs, targets)
        return self._figure(found)

    def _values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        rows = self._neighbours(outputs, targets)
        found = [self._checked(self._figure(row)) for row in rows]
        return torch.tensor(found, dtype=torch.float64, device=outputs.device)

    def _neighbours(self, outputs: Tensor, targets: Tensor) -> tuple[Neighbours, ...]:
        if len(targets) - 1 < self.gallery:
            raise DataError(
                f"metric {self.name!r} needs a gallery of {self.gallery} examples or "
                f"more besides the query, got {len(targets) - 1}"
            )
        return ranks_of(outputs, targets, name=self.name)

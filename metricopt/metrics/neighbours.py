"""Nearest neighbours among embeddings: every example a query, all others its gallery.

Exact, by cosine. The similarities of a few queries are held at a time, and nothing is
sorted but the R nearest of each. What several metrics need comes from the one pass.
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.errors import DataError, MetricError
from metricopt.metrics.base import Metric, check_integers
from metricopt.reading.outputs import Remembered, Targets

QUERIES, HELD = 256, 2**24
"""Most queries at a time, and most similarities held: 64 MiB of float32."""
TIE = 8
"""Similarities that differ by no more than this times the machine epsilon are tied.

A sum of products is no more exact, and depends on where in the matrix it is computed.
"""


@dataclass(frozen=True)
class Neighbours:
    """What every query finds in its gallery, the N - 1 other examples.

    A gallery example of another class that ties with one of the query's own class comes
    before it: embeddings that are all the same find nothing.

    Attributes:
        nearest_rank: number of examples of other classes before the first of the
            query's own class, int64, [N], from 0 to N - 2.
        precision: average precision at R of every query, float64, [N], in [0, 1].
    """

    nearest_rank: Tensor
    precision: Tensor

    def recall(self, k: int) -> float:
        """Return the share of queries with their own class among the k nearest.

        A k beyond the gallery means the whole gallery.
        """
        return float((self.nearest_rank < k).double().mean())


def ranks_of(
    outputs: Tensor, targets: Targets, *, name: str = "retrieval"
) -> tuple[Neighbours, ...]:
    """Return the neighbours of every row; those asked for last are remembered.

    Several metrics of the same outputs so cost one pass; see `Remembered`. Embeddings
    are [N, E] for one row or [B, N, E], of any length but 0; integer labels [N] are
    those of every row, two of each class or more. Errors name the metric.
    """
    labels = check_integers(name, targets)
    found = _LAST.find(outputs, labels)
    if found is None:
        check_classes(name, labels)
        single = outputs[None] if outputs.ndim == 2 else outputs
        found = tuple(neighbours(row, labels, name=name) for row in single)
        _LAST.keep(outputs, labels, found)
    return found


def check_classes(name: str, labels: Tensor) -> None:
    """Raise DataError for labels of one class, or with a class of one example.

    The former could find nothing wrong, the latter nothing right.
    """
    classes, counts = torch.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise DataError(f"metric {name!r} needs two classes or more, got one")
    lonely = classes[counts == 1].tolist()
    if lonely:
        raise DataError(
            f"metric {name!r} needs two examples or more of every class, "
            f"got one of class {lonely[0]} ({len(lonely)} such classes)"
        )


@torch.no_grad()
def neighbours(
    embeddings: Tensor, labels: Tensor, *, name: str = "retrieval"
) -> Neighbours:
    """Compare all embeddings [N, E] with each other, in float32 or finer as they come.

    Labels [N] are integers, two of every class or more. MetricError is raised if an
    embedding is zero or not finite.

    Source of the precision: mean average precision at R, Musgrave et al., "A Metric
    Learning Reality Check", ECCV 2020: 1/R sum_{i=1}^R P(i), where R is the number of
    gallery examples of the query's class, and P(i) the precision among the i nearest if
    the i-th is one of them, else 0.
    """
    # A class is a slice of the columns then.
    order = labels.to(embeddings.device).argsort(stable=True)
    labels = labels.to(embeddings.device)[order]
    unit = of_length_one(embeddings, name)[order]
    examples = len(order)
    chunk = max(1, min(QUERIES, HELD // examples))
    ranks = torch.empty_like(order)
    precision = torch.empty(examples, dtype=torch.float64, device=order.device)
    for start in range(0, examples, chunk):
        queries = order[start : start + chunk]
        ranks[queries], precision[queries] = _of_queries(unit, labels, start, chunk)
    return Neighbours(ranks, precision)


def of_length_one(embeddings: Tensor, name: str) -> Tensor:
    """Return embeddings [N, E] at unit length, in float32 or finer as they come.

    Raises:
        MetricError: if one is zero or not finite; the message names the metric.
    """
    kind = torch.promote_types(embeddings.dtype, torch.float32)
    embeddings = embeddings.to(kind)
    # In double precision, so that the square of a great number is finite.
    lengths = torch.linalg.vector_norm(embeddings, dim=1, dtype=torch.float64).to(kind)
    wrong = ~(lengths.isfinite() & (lengths > 0))
    if bool(wrong.any()):
        where = int(wrong.nonzero()[0])
        raise MetricError(
            f"metric {name!r} needs embeddings of finite length above 0, got length "
            f"{float(lengths[where]):g} for example {where}"
        )
    unit: Tensor = embeddings / lengths[:, None]
    return unit


def _of_queries(
    unit: Tensor, labels: Tensor, start: int, chunk: int
) -> tuple[Tensor, Tensor]:
    """Return nearest ranks and precisions of at most `chunk` queries from one on, [q].

    Embeddings [N, E] are of length one, in the order of their labels [N].
    """
    asked = labels[start : start + chunk]
    similarities = unit[start : start + chunk] @ unit.t()
    first = int(torch.searchsorted(labels, asked[0]))
    last = int(torch.searchsorted(labels, asked[-1], right=True))
    span = similarities[:, first:last]
    same = asked[:, None] == labels[first:last]
    own = span.masked_fill(~same, -torch.inf)
    own.diagonal(start - first).fill_(-torch.inf)  # the query itself
    span.masked_fill_(same, -torch.inf)  # from here on, of other classes only
    relevant = same.sum(1, keepdim=True) - 1
    most = int(relevant.max())
    # From here on another class comes before the j-th of the own; -inf if R < j.
    bounds = own.topk(most).values - TIE * torch.finfo(unit.dtype).eps
    before = (similarities >= bounds[:, :1]).view(torch.uint8)
    ranks = before.sum(1, dtype=torch.int32)  # several times faster than of bool
    others = similarities.topk(most).values
    places = torch.searchsorted(-others, -bounds, right=True)
    hits = torch.arange(1, most + 1, device=unit.device).expand_as(places)
    places = places + hits
    # A place is exact up to R, as only the nearest `most` others were counted.
    precision = torch.where(places <= relevant, hits.double() / places, 0.0)
    return ranks.long(), precision.sum(1) / relevant[:, 0]


_LAST: Remembered[tuple[Neighbours, ...]] = Remembered()


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

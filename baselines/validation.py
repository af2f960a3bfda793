"""Metered access to the metric: the only access that a baseline gets."""

import torch
from torch import Tensor

from metricopt.errors import DataError, ShapeError
from metricopt.metrics.base import Metric, to_cost
from metricopt.reading.columns import columned, columns_at, columns_of
from metricopt.reading.outputs import Outputs, Targets, leading, targets_at
from metricopt.tasks.examples import Examples, relabelled
from metricopt.tasks.task import Meter


class Validation:
    """The observe split, and a metric that can only be queried at a price.

    Args:
        metric: the black box; methods never see it.
        observe: examples for selection and for metric queries.
        limit: greatest number of queries; None for no limit.

    Attributes:
        observe: examples for selection and for metric queries.
        meter: counts and limits the queries.
    """

    def __init__(
        self, metric: Metric, observe: Examples, *, limit: int | None = None
    ) -> None:
        self._metric = metric
        self.observe = observe
        self.meter = Meter(limit)

    @property
    def queries(self) -> int:
        """Metric queries made so far."""
        return self.meter.queries

    def costs(self, outputs: Outputs, targets: Targets | None = None) -> Tensor:
        """Query the metric, once per row of outputs.

        Args:
            outputs: network outputs, shape [R, n, C]; a tuple of tensors [R, n, ...]
                for a metric that takes them.
            targets: labels of the n examples; those of the observe split if None.

        Returns:
            Costs, shape [R], float64, lower is better, in [0, 1].

        Raises:
            MetricError: if the metric fails; the message names it and the value.
            BudgetExceededError: if the queries would exceed the limit.
        """
        return self.as_costs(self.values(outputs, targets))

    def values(self, outputs: Outputs, targets: Targets | None = None) -> Tensor:
        """Query the metric as `costs` does, and return its values in native units.

        Converting costs back would round them.
        """
        if targets is None:
            own = columned(
                self.observe.targets, columns_of(self.observe), self._metric.columns
            )
            return self._charged(outputs, own, "observe")
        # Targets given by the caller belong to training examples.
        return self._charged(outputs, targets, "train")

    def values_on(self, places: Tensor, outputs: Tensor) -> Tensor:
        """Query the metric on some examples of the observe split.

        Args:
            places: places of n examples in the observe split, shape [n].
            outputs: network outputs for them, shape [R, n, C].

        Returns:
            Native values, shape [R], float64.

        Raises:
            MetricError, BudgetExceededError: as in `costs`.
        """
        targets = targets_at(self.observe.targets, places)
        beside = columns_at(columns_of(self.observe), places)
        own = columned(targets, beside, self._metric.columns)
        return self._charged(outputs, own, "observe")

    def relabelled(self, targets: Tensor) -> "Validation":
        """Return access to the same metric on observe with other labels.

        Queries count here, too.

        Args:
            targets: labels of the observe split, shape [N].
        """
        other = Validation(self._metric, relabelled(self.observe, targets))
        other.meter = self.meter
        return other

    def as_costs(self, values: Tensor) -> Tensor:
        """Convert native values of the metric to costs; this is no query."""
        return to_cost(self._metric, values)

    def charge(self, count: int) -> None:
        """Count queries of a known metric that a method computes by itself.

        Args:
            count: number of outputs whose metric the method is about to learn.

        Raises:
            BudgetExceededError: if they would exceed the limit; none is counted then.
        """
        self.meter.charge(count)

    def _charged(self, outputs: Outputs, targets: Targets, split: str) -> Tensor:
        rows = len(leading(outputs))
        self.meter.require(rows)
        with torch.no_grad():
            values = self._metric.values(outputs, targets)
        self.meter.charge(rows, split)
        return values


def labels(examples: Examples) -> Tensor:
    """Return the labels of examples, shape [N].

    Raises:
        DataError: if the targets are not in one tensor.
    """
    targets = examples.targets
    if not isinstance(targets, Tensor):
        raise DataError(
            "training a network needs labels in one tensor [N], got "
            f"{type(targets).__name__}"
        )
    return targets


def check_binary(outputs: Outputs, targets: Tensor, *, user: str) -> None:
    """Check that there is one logit per example and that both classes occur.

    Args:
        outputs: outputs of a network, for any examples.
        targets: labels of a whole split.
        user: what needs a binary problem, for messages.

    Raises:
        ShapeError: if outputs are not [N, 1].
        DataError: if the labels are not 0 and 1, both present.
    """
    if not isinstance(outputs, Tensor):
        raise ShapeError(
            f"{user} needs one logit, outputs [N, 1], got a tuple of {len(outputs)} "
            "tensors"
        )
    if outputs.ndim != 2 or outputs.shape[1] != 1:
        raise ShapeError(
            f"{user} needs one logit, outputs [N, 1], got {list(outputs.shape)}"
        )
    classes = targets.unique().tolist()
    if classes != [0, 1]:
        raise DataError(f"{user} needs targets of both classes 0 and 1, got {classes}")

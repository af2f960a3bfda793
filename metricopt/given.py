"""What a user gave to one call, as it was read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from metricopt.metrics.base import Metric
from metricopt.reading.columns import Columns, columns_of
from metricopt.reading.meaning import Meaning
from metricopt.tasks.clusters import NO_CLUSTERS, Clusters
from metricopt.tasks.examples import Examples
from metricopt.tasks.row_losses import Loss


@dataclass(frozen=True)
class Given:
    """What a user gave to improve a network by, as it was read.

    Attributes:
        train: examples the loss gradients come from.
        observe: examples the metric is queried on.
        loss: from outputs and targets to a scalar.
        metric: the black box.
        meaning: what outputs and targets are.
        network: whether there is a network; if not, inputs are outputs that are known,
            `train` is `observe`, and nothing is fine-tuned under other losses.
        dear: why phi are output offsets alone, if the network takes too long.
        whole: all examples, which confirm what a search on a sample of them, `observe`,
            has found; None if `observe` is all there is.
        clusters: which examples of observe belong together.
        theta: fingerprints of the weights and buffers, by their names, from before the
            network ran.
    """

    train: Examples
    observe: Examples
    loss: Loss
    metric: Metric
    meaning: Meaning
    network: bool = True
    dear: str = ""
    whole: Examples | None = None
    clusters: Clusters = NO_CLUSTERS
    theta: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> Columns:
        """What stands beside the labels of observe."""
        return columns_of(self.observe)

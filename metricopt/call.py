"""What one call of `finetune` works on, and who goes along with it."""

from dataclasses import dataclass

from metricopt.journal.journal import Journal
from metricopt.reading.meaning import Meaning
from metricopt.tasks.examples import Examples
from metricopt.tasks.recorded_task import OnQuery
from metricopt.tasks.row_losses import Loss


@dataclass(frozen=True)
class Data:
    """What phi is learned from.

    Attributes:
        train: examples the loss gradients come from.
        observe: examples the metric is queried on.
        loss: from outputs and targets to a scalar.
        meaning: what outputs and targets are.
    """

    train: Examples
    observe: Examples
    loss: Loss
    meaning: Meaning


@dataclass(frozen=True)
class Call:
    """What a call of `finetune` has beside its arguments.

    Attributes:
        started: when it began, by `time.perf_counter`.
        on_query: called with the number of queries just made.
        journal: where answers of the metric are kept; None for nowhere.
    """

    started: float
    on_query: OnQuery
    journal: Journal | None = None

"""The tasks that an optimizer is meta-trained on: losses of phi, and their metric."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from torch import Tensor

from metricopt.errors import ConfigError


class InnerTasks(ABC):
    """B tasks of the training distribution, each with a phi of its own of one size d.

    Meta-training runs C copies of the optimizer on every task, with other weights each.
    Copies of a task must differ in nothing else: at a step all of them get the same
    mini-batch, and asked again for the same step, they get it again.
    """

    @abstractmethod
    def starts(self) -> Tensor:
        """Return phi_0 of every task, shape [B, d]."""

    @abstractmethod
    def losses(self, phi: Tensor, step: int) -> Tensor:
        """Return the losses of phi [C, B, d] at a step, [C, B], differentiable.

        A loss that is not finite ends the run there: it stays at the phi before.
        """

    def costs(self, phi: Tensor, step: int) -> Tensor:
        """Return the metric of phi [C, B, d], or what predicts it: [C, B] in [0, 1].

        Lower is better. It has to be differentiable only where meta-training goes
        through it, which evolution strategies do not.

        Raises:
            ConfigError: if the tasks have no metric.
        """
        raise ConfigError(
            f"{type(self).__name__} has no metric: use an optimizer without inputs of "
            "the metric, and an objective with metric_weight=0"
        )

    def shown(self, costs: Tensor, step: int) -> Tensor:
        """Return what an optimizer is shown where `costs` are [C, B]: usually those.

        Tasks whose `costs` are predictions can correct them by what was observed.
        """
        return costs


TasksOf = Callable[[Sequence[int]], InnerTasks]
"""From numbers to as many tasks: the same number is always the same task."""

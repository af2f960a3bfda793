"""A value function of statistics in the place of the one of phi: no paper has it.

`runs_of(task, cost=...)` takes any supervision: `task.observe` is the metric itself,
and charges every look; what is returned here charges none.
"""

import torch
from torch import Tensor

from metricopt.algorithm_s1.task_runs import Cost
from metricopt.errors import ConfigError
from metricopt.on_outputs.statistics_value import explain
from metricopt.tasks.task import Task


def statistics_cost(task: Task, phi: Tensor, costs: Tensor) -> Cost:
    """Return what predicts the metric from statistics of outputs and labels.

    Once a metric is identified, the prediction is as good as a query, and free. It has
    no gradient, which evolution strategies do not need.

    Args:
        task: a task with statistics.
        phi: what was queried, shape [n, d].
        costs: what the metric said, shape [n].

    Raises:
        ConfigError: if no statistics are known for the task.
    """
    statistics = task.statistics
    if statistics is None:
        raise ConfigError(
            f"{type(task).__name__} must have statistics of outputs and labels to "
            "predict its metric by them, got none"
        )
    known = explain(statistics, statistics.exact(phi), costs.double())

    @torch.no_grad()
    def cost(phi: Tensor) -> Tensor:
        predicted, _ = known.value.predict(known.statistics.exact(phi.detach()))
        return predicted.clamp(0, 1).to(phi.dtype)

    return cost

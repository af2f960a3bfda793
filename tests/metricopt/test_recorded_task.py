"""A task that counts every observation, and keeps the best on the observe split."""

import torch
from torch import nn

import metricopt
from metricopt.metrics import make_metric
from metricopt.recorded_task import RecordedTask
from tests.metricopt import adapter_networks
from tests.metricopt.counted_metric import Counted


def test_queries_on_train_are_counted_but_never_best() -> None:
    metric = Counted()
    black_box = make_metric(metric, higher_is_better=True)
    inputs, targets = torch.randn(8, 6), torch.arange(8) % 3
    train = observe = metricopt.Split(inputs, targets)
    adapter = metricopt.auto_adapter(adapter_networks.mlp(), inputs)
    task = RecordedTask(
        adapter, nn.CrossEntropyLoss(), black_box, train=train, observe=observe
    )
    made: list[int] = []
    task.on_query = made.append
    task.observe_untouched()
    best = task.best
    costs = task.observe_train(torch.zeros(2, task.size), torch.Generator())
    assert costs.tolist() == [1 - value for value in metric.values[-2:]]
    assert task.best is best
    assert (task.measured, task.queries, sum(made)) == (3, 3, 3)

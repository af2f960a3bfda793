"""A real task for methods that see outputs: digits whose rare classes are missed."""

import torch
from torch import nn

from metricopt.adapters.auto import auto_adapter
from metricopt.process.seeding import Seeds
from metricopt.reading.callables import make_metric
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.sampling import Split
from tests.metricopt.digits_network import pretrained, splits

TRAIN, OBSERVE, TEST = (Split(*part) for part in splits())


def digits_task(metric, *, seed=1, observe=OBSERVE, **settings):
    network = pretrained(seed)
    adapter = auto_adapter(network, TRAIN.inputs[:4], seed=0)
    return NetworkTask(
        adapter,
        nn.CrossEntropyLoss(),
        make_metric(metric, **settings),
        train=TRAIN,
        observe=observe,
        drawing=Drawing(seeds=Seeds("digits", seed)),
    )


def few(count):
    """Return the first examples of the test split."""
    return Split(TEST.inputs[:count], TEST.targets[:count])


def judged(task, metric, phi, split=TEST):
    """Native values of a metric for phi [R, d] on a split, mean over the rows."""
    adapter = task.adapter
    with torch.no_grad():
        outputs = adapter.predict(adapter.encode(split.inputs), phi)
    return make_metric(metric).values(outputs, split.targets).mean().item()

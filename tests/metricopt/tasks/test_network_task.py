"""A task of a network: cached features, own mini-batches, losses in one call."""

import copy

import pytest
import torch
from torch import nn

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.errors import LossError, MetricError
from metricopt.reading.callables import CallableMetric, make_metric
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.sampling import BalancedSampler, NaturalSampler, Sampler, Split
from tests.metricopt import adapter_networks as networks
from tests.metricopt.drawn import draw, labels, seeded

TRAIN = Split(draw(40, 6), labels(40))
OBSERVE = Split(draw(25, 6, seed=2), labels(25, seed=3))


@pytest.fixture
def network():
    return networks.mlp()


@pytest.fixture
def adapter(network):
    return DynamicBias(network, size=5)


def task_of(adapter, *, loss=None, metric="mcr", sampler=None):
    return NetworkTask(
        adapter,
        loss or nn.CrossEntropyLoss(),
        make_metric(metric) if isinstance(metric, str) else metric,
        train=TRAIN,
        observe=OBSERVE,
        drawing=Drawing(sampler),
    )


def test_losses_equal_a_loop_over_rows_and_their_own_batches(adapter):
    sampler = BalancedSampler(TRAIN.targets, 9)
    task, phi = task_of(adapter, sampler=sampler), draw(4, 5)
    losses = task.losses(phi, seeded())
    index = sampler.draw(4, seeded())
    for row in range(4):
        features = adapter.encode(TRAIN.inputs[index[row]])
        outputs = adapter.predict(features, phi[row : row + 1])[0]
        expected = nn.functional.cross_entropy(outputs, TRAIN.targets[index[row]])
        torch.testing.assert_close(losses[row], expected)
    assert task.loss_evaluations == 4
    assert task.queries == 0


def test_losses_are_differentiable_row_by_row(adapter):
    task = task_of(adapter)
    phi = draw(3, 5).requires_grad_()
    losses = task.losses(phi, seeded())
    (gradient,) = torch.autograd.grad(losses[1], phi)
    assert gradient[1].abs().sum() > 0
    assert gradient[[0, 2]].abs().sum() == 0


def test_costs_are_those_of_the_metric_on_the_observe_split(adapter):
    task, phi = task_of(adapter, metric="top-1"), 20 * draw(4, 5)
    outputs = adapter.predict(adapter.encode(OBSERVE.inputs), phi)
    hits = (outputs.argmax(2) == OBSERVE.targets).double().mean(1)
    costs = task.observe(phi)
    assert len(costs.unique()) > 1
    torch.testing.assert_close(costs, 1.0 - hits)
    assert costs.dtype == torch.float64
    assert task.queries == 4


def test_costs_on_train_are_those_of_one_part_as_large_as_the_observe_split(adapter):
    task, phi = task_of(adapter, metric="top-1"), 20 * draw(4, 5)
    outputs = adapter.predict(adapter.encode(TRAIN.inputs), phi)
    misses = (outputs.argmax(2) != TRAIN.targets).double()
    part = torch.randperm(40, generator=seeded())[:25]
    costs = task.observe_train(phi, seeded())
    torch.testing.assert_close(costs, misses[:, part].mean(1))
    assert not torch.equal(costs, task.observe_train(phi, seeded(1)))
    assert task.queries == 8


def test_without_phi_the_task_is_the_pre_trained_network(network, adapter):
    task = task_of(adapter)
    with torch.no_grad():
        expected = copy.deepcopy(network).eval()(OBSERVE.inputs)
    outputs = task._judge.outputs(torch.zeros(1, 5))[0]
    torch.testing.assert_close(outputs, expected)


def test_the_network_stays_as_it_was(network, adapter):
    before = copy.deepcopy(network.state_dict())
    task, phi = task_of(adapter), draw(2, 5).requires_grad_()
    task.losses(phi, seeded()).sum().backward()
    task.observe(phi)
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(weight.grad is None for weight in network.parameters())


def test_losses_in_parts_have_the_gradients_of_the_whole(monkeypatch):
    network = networks.randomise(networks.ResNet())
    inputs, start = draw(11, 3, 8, 8), 0.3 * draw(3, 6)
    adapter = FiLM(network, inputs, size=6)
    task = NetworkTask(
        adapter,
        nn.CrossEntropyLoss(),
        make_metric("mcr"),
        train=Split(inputs, labels(11)),
        observe=Split(inputs, labels(11)),
        drawing=Drawing(NaturalSampler(11, 5)),
    )
    found = {}
    for numbers in (10**9, 1):
        monkeypatch.setattr("metricopt.tasks.encoding.MAP_NUMBERS_PER_PASS", numbers)
        phi = torch.nn.Parameter(start.clone())
        losses = task.losses(phi, seeded(0))
        (losses * torch.tensor([1.0, 2.0, -3.0])).sum().backward()
        found[numbers] = losses.detach(), phi.grad
    whole, parts = found.values()
    assert whole[1].abs().min() > 0
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other)
    # Second derivatives would need the graph of all rows.
    losses = task.losses(phi, seeded(0))
    with pytest.raises(LossError, match="second derivatives"):
        torch.autograd.grad(losses.sum(), phi, create_graph=True)


def test_a_failing_metric_says_where(adapter, monkeypatch):
    def fails_when_large(outputs, targets):
        return 2.0 if outputs.abs().max() > 50 else 0.5

    monkeypatch.setattr("metricopt.tasks.encoding.EXAMPLES_PER_PASS", 50)
    metric = CallableMetric(fails_when_large, "picky", higher_is_better=True, high=1)
    task, phi = task_of(adapter, metric=metric), draw(5, 5)
    phi[3] *= 1e4
    with pytest.raises(MetricError, match="'picky' returned 2, outside its") as caught:
        task.observe(phi)
    assert caught.value.__notes__ == ["while evaluating rows 2 to 4"]
    assert task.queries == 0


def test_a_sampler_of_the_user_is_used(adapter):
    class FirstOnly(Sampler):
        def draw(self, rows, generator):
            return torch.zeros(rows, self.batch_size, dtype=torch.long)

    task = task_of(adapter, sampler=FirstOnly(2))
    loss = task.losses(torch.zeros(1, 5), seeded())
    outputs = adapter.predict(adapter.encode(TRAIN.inputs[:1]), torch.zeros(1, 5))[0]
    expected = nn.functional.cross_entropy(outputs, TRAIN.targets[:1])
    torch.testing.assert_close(loss[0], expected)

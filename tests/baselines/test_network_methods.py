"""What every method that trains the whole network promises."""

import copy

import pytest
import torch
from torch import nn

import baselines
from baselines.network_method import NETWORK_METHODS, Schedule
from metricopt.errors import DataError, DivergedError, ShapeError
from metricopt.metrics import make_metric
from metricopt.registry import import_units
from metricopt.sampling import Split
from metricopt.seeding import make_generator

import_units(baselines)
NAMES = list(NETWORK_METHODS)
BINARY_ONLY = ["cost-sensitive", "learned-surrogate"]
SCHEDULE = Schedule(epochs=6, batch_size=32, learning_rate=0.02, balanced=True)


def run(name, network, data, *, seed="a", on_epoch=None, schedule=SCHEDULE):
    return NETWORK_METHODS.get(name)(on_epoch=on_epoch).train(
        network,
        data.train,
        data.observe,
        metric=make_metric("f1"),
        schedule=schedule,
        generator=make_generator(seed),
    )


@pytest.mark.parametrize("name", NAMES)
def test_f1_beats_the_floor_and_the_given_network_is_left_alone(name, network, data):
    before = copy.deepcopy(network.state_dict())
    epochs = []
    result = run(name, network, data, on_epoch=epochs.append)
    outputs = result.predict(data.test.inputs)
    assert outputs.shape == (len(data.test), 1)
    assert make_metric("f1").value(outputs, data.test.targets) > 0.9
    assert len(epochs) % SCHEDULE.epochs == 0
    assert result.gradient_steps == len(epochs) * SCHEDULE.steps_per_epoch(330)
    assert not result.network.training
    assert network.training
    for key, value in network.state_dict().items():
        assert torch.equal(value, before[key])


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_result(name, network, data):
    schedule = Schedule(epochs=1, batch_size=64, learning_rate=0.02, balanced=False)
    outputs = []
    for seed in ("a", "a", "b"):
        torch.rand(3)
        result = run(name, network, data, seed=seed, schedule=schedule)
        outputs.append(result.predict(data.test.inputs))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("name", NAMES)
def test_a_diverging_run_says_so(name, network, data):
    spoiled = data.train.inputs.clone()
    spoiled[:, 0] = torch.inf
    bad = data._replace(train=Split(spoiled, data.train.targets))
    with pytest.raises(DivergedError, match="the loss became nan in epoch 1"):
        run(name, network, bad)


@pytest.mark.parametrize("name", NAMES)
def test_one_class_is_refused(name, network, data):
    zeros = Split(data.train.inputs, torch.zeros_like(data.train.targets))
    with pytest.raises(DataError, match=r"(two|both) classes.*got.* \[0\]"):
        run(name, network, data._replace(train=zeros))


@pytest.mark.parametrize("name", BINARY_ONLY)
def test_more_than_one_logit_is_refused(name, data):
    with pytest.raises(ShapeError, match=r"needs one logit.*got \[1, 2\]"):
        run(name, nn.Linear(30, 2), data)


def test_the_threshold_is_subtracted(network, data):
    result = run("cost-sensitive", network, data)
    raw = result.network(data.test.inputs).detach()
    torch.testing.assert_close(result.predict(data.test.inputs), raw - result.threshold)

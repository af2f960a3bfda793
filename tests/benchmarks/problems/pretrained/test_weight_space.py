"""Networks at any weights: statistics of batch norms, loss and metric there."""

import pytest
import torch
from torch import nn

from benchmarks.problems.pretrained.weight_space import WeightSpace, renew_statistics
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline

INPUTS = torch.tensor([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0]])


def test_statistics_become_those_of_the_inputs():
    norm = nn.BatchNorm1d(2)
    network = nn.Sequential(norm, nn.Dropout(0.9)).eval()
    norm.running_mean.fill_(7.0)
    outputs = renew_statistics(network, INPUTS)
    # Means 3 and 20; unbiased variances 8 / 2 and 600 / 2.
    assert norm.running_mean.tolist() == [3.0, 20.0]
    assert norm.running_var.tolist() == [4.0, 300.0]
    # Outputs have the biased variance 8 / 3 of the inputs, and nothing is dropped.
    expected = torch.tensor([-2.0, 0.0, 2.0]) / (8 / 3 + norm.eps) ** 0.5
    torch.testing.assert_close(outputs[:, 0], expected)
    assert not norm.training
    assert norm.momentum == 0.1


@pytest.fixture
def pipeline(shared_cache):
    return smoke_pipeline("figs2", "cross-entropy")


@pytest.fixture
def space(pipeline):
    metric = pipeline.metric(Unit("mcr"))
    return WeightSpace(pipeline, metric, train=100, test=50)


def test_levels_are_those_of_the_network_with_these_weights(pipeline, space):
    origin = space.weights(space.origin)
    losses, errors = space.levels(torch.stack([origin, torch.zeros_like(origin)]))
    network = space.network(origin)
    train = pipeline.splits.train.batch(slice(100))
    test = pipeline.splits.test.batch(space.tested)
    with torch.no_grad():
        wrong = network(test).argmax(1) != pipeline.splits.test.targets[space.tested]
        # With the unbiased variance, so not quite alike.
        loss = nn.functional.cross_entropy(
            network(train), pipeline.splits.train.targets[:100]
        )
    assert errors[0] == wrong.double().mean()
    assert losses[0] == pytest.approx(float(loss), rel=0.02)
    # Zeros say nothing: all of 10 classes are equally likely.
    assert losses[1] == pytest.approx(torch.tensor(10.0).log().item())
    # The untouched network stays as it was.
    theta = pipeline.theta.state_dict()
    for name, tensor in space.origin.state_dict().items():
        assert torch.equal(tensor, theta[name])


def test_test_images_are_drawn_from_the_whole_split(pipeline, space):
    # CIFAR-10 is sorted by class: its first images are all of one.
    found, whole = space.tested, len(pipeline.splits.test)
    assert len(found.unique()) == len(found) == 50
    assert found.max() > 0.9 * whole
    assert found.min() < 0.1 * whole
    again = WeightSpace(pipeline, pipeline.metric(Unit("mcr")), train=10, test=whole)
    assert again.tested[:50].tolist() == found.tolist()
    assert again.tested.sort().values.tolist() == list(range(whole))


def test_halfway_to_itself_a_network_has_its_own_statistics(pipeline, space):
    test, targets = (
        pipeline.splits.test.batch(space.tested),
        pipeline.splits.test.targets,
    )
    with torch.no_grad():
        wrong = pipeline.theta(test).argmax(1) != targets[space.tested]
    assert space.interpolated(pipeline.theta) == float(wrong.double().mean())


def test_a_network_with_other_weights_is_refused(space):
    with pytest.raises(ConfigError, match="the same names and shapes"):
        space.weights(nn.Linear(2, 2))


def test_the_test_split_is_sealed(pipeline):
    metric = pipeline.metric(Unit("mcr"))
    with pipeline.sealed(), pytest.raises(Exception, match="the test split is read"):
        WeightSpace(pipeline, metric, train=10, test=10)

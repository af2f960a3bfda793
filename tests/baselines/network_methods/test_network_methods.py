"""What every method that trains the whole network promises, on all data it suits."""

import copy
from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import nn

from baselines.network_methods.contract import NETWORK_METHODS
from baselines.training.batches import Batches, PermutedBatches, SampledBatches
from baselines.training.optimization import Training
from baselines.training.prediction import predict_examples
from baselines.validation import Validation
from metricopt.errors import (
    BudgetExceededError,
    DataError,
    DivergedError,
    ShapeError,
)
from metricopt.metrics.base import Metric
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import Split
from tests.baselines.breast_cancer import breast_cancer, dropout_network
from tests.baselines.toy_images import ToyImages, image_network

NAMES = list(NETWORK_METHODS)
PROBLEMS = ["table", "images", "two kinds of images"]
BINARY_ONLY = {"cost-sensitive", "learned-surrogate"}
QUICK = {
    "moew": {"rounds": 2, "per_round": 2, "search_epochs": 3},
    "l2t-dlf": {"students": 1, "teaching_epochs": 6},
    "cost-sensitive": {"grid": (0.3, 0.6)},
}
"""Shorter searches, where a method takes long."""
TABLE_TRAINING = Training(epochs=6, learning_rate=0.02)
IMAGE_TRAINING = Training(
    epochs=20,
    learning_rate=0.05,
    optimizer="sgd",
    precision="bfloat16",
    channels_last=True,
)


class Evaluated(Metric):
    """A metric that counts the rows it evaluates."""

    def __init__(self, name):
        self._metric = make_metric(name)
        self.name, self.higher_is_better = name, self._metric.higher_is_better
        self.rows = 0

    def _value(self, outputs, targets):
        self.rows += 1
        return self._metric.value(outputs, targets)


@dataclass(frozen=True)
class Problem:
    network: nn.Module
    batches: Batches
    observe: Examples
    metric: str
    training: Training


def make_problem(name):
    if name == "table":
        data = breast_cancer()
        batches = SampledBatches(data.train, 32, balanced=True)
        return Problem(dropout_network(), batches, data.observe, "f1", TABLE_TRAINING)
    train, observe = ToyImages(), ToyImages(seed=1)
    if name == "images":
        network, metric = image_network(), "mcr"
    else:
        network, metric = image_network(outputs=1), "f1"
        for images in (train, observe):
            images.targets = (images.targets >= 2).long()
    batches = PermutedBatches(train, 16)
    return Problem(network, batches, observe, metric, IMAGE_TRAINING)


def metered(problem, limit=None):
    return Validation(Evaluated(problem.metric), problem.observe, limit=limit)


def run(name, problem, validation=None, *, seed="a", on_epoch=None):
    validation = validation or metered(problem)
    method = NETWORK_METHODS.get(name)(on_epoch=on_epoch, **QUICK.get(name, {}))
    result = method.train(
        problem.network,
        problem.batches,
        validation,
        training=problem.training,
        generator=make_generator(seed),
    )
    return result, validation


@cache
def ran(name, kind):
    """A problem, what was reported of its epochs, and what came of it."""
    problem, epochs = make_problem(kind), []
    before = copy.deepcopy(problem.network.state_dict())
    result, validation = run(name, problem, on_epoch=epochs.append)
    return problem, before, epochs, result, validation


def suits(name, kind):
    problem = make_problem(kind)
    outputs = problem.network.eval()(problem.batches.plain(1)).detach()
    return NETWORK_METHODS.get(name)().suits(outputs, problem.batches.targets)


CASES = [(name, kind) for name in NAMES for kind in PROBLEMS if suits(name, kind)]


def test_every_method_suits_some_data_and_refuses_the_rest():
    assert {name for name, _ in CASES} == set(NAMES)
    refused = {(name, "images") for name in BINARY_ONLY}
    everything = {(name, kind) for name in NAMES for kind in PROBLEMS}
    assert everything - set(CASES) == refused
    for name, kind in refused:
        with pytest.raises(ShapeError, match=r"needs one logit.*got \[1, 4\]"):
            run(name, make_problem(kind))
    for name in NAMES:
        method = NETWORK_METHODS.get(name)()
        assert not method.suits(torch.zeros(3), torch.tensor([0, 1]))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_it_learns_and_leaves_the_given_network_alone(name, kind):
    problem, before, epochs, result, _ = ran(name, kind)
    observed = predict_examples(result.network, problem.observe)
    assert torch.equal(
        result.predict(problem.observe.batch(slice(None))), observed - result.threshold
    )
    metric = make_metric(problem.metric)
    reached = metric.value(observed - result.threshold, problem.observe.targets)
    assert reached > 0.8 if metric.higher_is_better else reached < 0.3
    # Every training is reported from its first epoch to its last.
    whole = [each.epochs for each in epochs if each.number == each.epochs]
    assert sum(whole) == len(epochs)
    assert problem.training.epochs in whole
    assert result.gradient_steps == len(epochs) * problem.batches.steps_per_epoch
    assert not result.network.training
    assert problem.network.training
    for key, value in problem.network.state_dict().items():
        assert torch.equal(value, before[key])


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_query_is_counted_and_reported(name, kind):
    _, _, _, result, validation = ran(name, kind)
    assert result.queries == validation.queries
    assert validation._metric.rows <= validation.queries
    if name == "surrogate-loss":
        assert validation.queries == 0
    if name == "learned-surrogate":
        assert validation._metric.rows == validation.queries


@pytest.mark.parametrize("name", NAMES)
def test_no_more_queries_are_made_than_allowed(name):
    kind = "two kinds of images"  # which all suit; queries are counted alike on all
    spent = ran(name, kind)[-1].queries
    problem = make_problem(kind)
    before = copy.deepcopy(problem.network.state_dict())
    for limit in {0, max(0, spent - 1)} - {spent}:
        validation = metered(problem, limit)
        with pytest.raises(BudgetExceededError, match=f"exceed the limit of {limit}$"):
            run(name, problem, validation)
        assert validation._metric.rows <= validation.queries <= limit
    for key, value in problem.network.state_dict().items():
        assert torch.equal(value, before[key])
    assert run(name, problem, metered(problem, spent))[0].queries == spent


def reachable(thing, depth=3):
    """What can be had from a thing by public names."""
    if depth == 0 or isinstance(thing, torch.Tensor):
        return
    for name in dir(thing):
        if not name.startswith("_"):
            value = getattr(thing, name)
            yield value
            if type(value).__module__.partition(".")[0] in ("metricopt", "baselines"):
                yield from reachable(value, depth - 1)


def test_the_raw_metric_is_out_of_reach_by_public_names():
    validation = Validation(make_metric("f1"), breast_cancer().observe, limit=3)
    found = list(reachable(validation))
    assert validation.meter in found
    assert not [value for value in found if isinstance(value, Metric)]
    bound = [getattr(value, "__self__", None) for value in found]
    assert not [owner for owner in bound if isinstance(owner, Metric)]


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_result(name):
    problem = make_problem("table")
    problem = Problem(
        problem.network,
        SampledBatches(breast_cancer().train, 64),
        problem.observe,
        "f1",
        Training(epochs=1, learning_rate=0.02),
    )
    outputs = []
    for seed in ("a", "a", "b"):
        torch.rand(3)
        result, _ = run(name, problem, seed=seed)
        outputs.append(predict_examples(result.network, problem.observe))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("name", NAMES)
def test_a_diverging_run_says_so(name):
    data, problem = breast_cancer(), make_problem("table")
    spoiled = data.train.inputs.clone()
    spoiled[:, 0] = torch.inf
    batches = SampledBatches(Split(spoiled, data.train.targets), 32, balanced=True)
    bad = Problem(problem.network, batches, data.observe, "f1", TABLE_TRAINING)
    with pytest.raises(DivergedError, match="the loss became nan in epoch 1 of 6"):
        run(name, bad)


@pytest.mark.parametrize("name", sorted(BINARY_ONLY))
def test_one_class_is_refused(name):
    data, problem = breast_cancer(), make_problem("table")
    zeros = Split(data.train.inputs, torch.zeros_like(data.train.targets))
    bad = Problem(
        problem.network, SampledBatches(zeros, 32), data.observe, "f1", TABLE_TRAINING
    )
    with pytest.raises(DataError, match=r"both classes.*got.* \[0\]"):
        run(name, bad)

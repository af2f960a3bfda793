"""What all pipelines share: judging any choice, and a test split out of reach."""

import gc
import types

import pytest
import torch

from baselines.losses.contract import LOSSES
from benchmarks.arms.contract import AuditedMetric
from benchmarks.problems.choices import Adapted, Shifted, Trained
from benchmarks.problems.contract import SealedError
from benchmarks.problems.tabular.pipeline import TabularPipeline
from benchmarks.runs.spec import Unit
from metricopt.metrics.base import METRICS, Metric
from metricopt.reading.callables import make_metric
from tests.benchmarks.problems.pipeline_cases import tabular

LABELS = ("f1", "mcr", "jaccard")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.getbasetemp() / "pipelines-cache"
        patch.setenv("METRICOPT_CACHE", str(cache))
        found = TabularPipeline(tabular(), 0)
        assert found.theta
        return found


@pytest.fixture
def metrics(pipeline):
    return pipeline.metrics([Unit(label) for label in LABELS])


def some_phi(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 16, generator=generator)


def by_hand(metrics, outputs, targets):
    return {
        name: [metric.value(row, targets) for row in outputs]
        for name, metric in metrics.items()
    }


@pytest.mark.parametrize("split", ["observe", "test"])
def test_every_kind_of_choice_is_judged_as_by_hand(pipeline, metrics, split):
    examples, phi = pipeline.splits.parts[split], some_phi(3, 0)
    features = pipeline.adapter.encode(examples.inputs)
    with torch.no_grad():
        adapted = pipeline.adapter.predict(features, phi)
        plain = pipeline.theta(examples.inputs)
    choices = [
        Adapted(phi),
        Shifted(lambda outputs: outputs - 0.5),
        Trained(lambda inputs: inputs[:, :1]),
    ]
    expected = [adapted, plain[None] - 0.5, examples.inputs[None, :, :1]]
    found = pipeline.evaluate(choices, split, metrics)
    for values, outputs in zip(found, expected, strict=True):
        assert list(values) == list(LABELS)
        hand = by_hand(metrics, outputs, examples.targets)
        for name in LABELS:
            assert values[name].tolist() == pytest.approx(hand[name], abs=1e-6)


def test_choices_judged_together_equal_those_judged_one_by_one(pipeline, metrics):
    choices = [
        Adapted(some_phi(2, 1)),
        Trained(lambda inputs: inputs[:, :1]),
        Adapted(some_phi(1, 2)),
        Shifted(lambda outputs: -outputs),
        Adapted(some_phi(3, 3)),
        Shifted(lambda outputs: torch.stack([outputs, outputs + 1])[1]),
    ]
    together = pipeline.evaluate(choices, "test", metrics)
    for choice, values in zip(choices, together, strict=True):
        for label in LABELS:
            only = {label: metrics[label]}
            (alone,) = pipeline.evaluate([choice], "test", only)
            assert list(alone) == [label]
            assert torch.equal(alone[label], values[label])
    sizes = [len(values["f1"]) for values in together]
    assert sizes == [2, 1, 1, 1, 3, 1]
    assert pipeline.evaluate([], "test", metrics) == []


def test_a_trained_network_sees_examples_in_parts(pipeline, metrics, monkeypatch):
    seen = []

    def predict(inputs):
        seen.append(len(inputs))
        return inputs[:, :1]

    (whole,) = pipeline.evaluate([Trained(predict)], "test", metrics)
    monkeypatch.setattr(TabularPipeline, "examples_at_once", 50)
    (parts,) = pipeline.evaluate([Trained(predict)], "test", metrics)
    assert seen == [114, 50, 50, 14]
    assert all(torch.equal(whole[name], parts[name]) for name in LABELS)


def test_outputs_are_those_of_the_untouched_network_on_observe(pipeline):
    with torch.no_grad():
        expected = pipeline.theta(pipeline.splits.observe.inputs)
    torch.testing.assert_close(pipeline.outputs(), expected, rtol=1e-5, atol=1e-5)


def test_the_train_loss_is_that_of_each_row(pipeline):
    phi = some_phi(5, 4)
    found = pipeline.train_loss(phi)
    train = pipeline.splits.train
    features = pipeline.adapter.encode(train.inputs)
    with torch.no_grad():
        outputs = pipeline.adapter.predict(features, phi)
        cross_entropy = LOSSES.get("cross-entropy")
        expected = [float(cross_entropy(row, train.targets)) for row in outputs]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


def test_a_validation_is_on_observe_and_limited(pipeline):
    validation = pipeline.validation(pipeline.metric(Unit("f1")), 3)
    assert validation.observe is pipeline.splits.observe
    assert validation.meter.limit == 3


def test_rates_are_shared_by_the_tasks_of_a_pipeline(pipeline):
    one, other = (pipeline.task(pipeline.metric(Unit("f1"))) for _ in range(2))
    assert one.rates is other.rates
    assert one.meter is not other.meter


def readers(metrics):
    """Everything that reads the test split, as callables of a pipeline."""
    return {
        "evaluate": lambda p: p.evaluate([Adapted(some_phi(1, 0))], "test", metrics),
        "no choice": lambda p: p.evaluate([], "test", metrics),
        "encoded": lambda p: p.encoded("test"),
        "oracle": lambda p: p.oracle_task(metrics["f1"]),
    }


@pytest.mark.parametrize("way", ["evaluate", "no choice", "encoded", "oracle"])
@pytest.mark.parametrize("read_before", [False, True])
def test_test_cannot_be_read_while_sealed(metrics, way, read_before):
    pipeline = TabularPipeline(tabular(), 0)
    read = readers(metrics)[way]
    if read_before:
        read(pipeline)
    with (
        pipeline.sealed(),
        pytest.raises(SealedError, match=r"the test split is read once, by the runner"),
    ):
        read(pipeline)
    read(pipeline)


def test_the_other_splits_can_be_read_while_sealed(pipeline, metrics):
    with pipeline.sealed():
        assert len(pipeline.encoded("train")) == 398
        (values,) = pipeline.evaluate([Adapted(some_phi(1, 0))], "observe", metrics)
        assert len(pipeline.outputs()) == 57
        assert pipeline.task(metrics["f1"]).queries == 0
    assert set(values) == set(LABELS)


def test_an_error_opens_the_seal(pipeline):
    with pytest.raises(KeyError), pipeline.sealed():
        raise KeyError
    pipeline.judged("test")
    assert len(pipeline.encoded("test")) == 114


def held_by(start):
    """Return every object that another holds, however deep, without globals."""
    seen, waiting = {}, [start]
    while waiting:
        item = waiting.pop()
        # The class itself, since proxies in torch warn when asked for theirs.
        kind = type(item)
        if id(item) in seen or issubclass(kind, type | types.ModuleType):
            continue
        seen[id(item)] = item
        if kind is types.FunctionType:
            waiting += [item.__closure__, item.__defaults__, item.__dict__]
        else:
            waiting += gc.get_referents(item)
    return list(seen.values())


@pytest.mark.parametrize("sampling", ["balanced", "natural"])
def test_no_task_can_reach_the_test_split(sampling):
    pipeline = TabularPipeline(tabular(sampling=sampling), 0)
    task = pipeline.task(pipeline.metric(Unit("f1")))
    test = pipeline.splits.test
    features = pipeline.adapter.encode(test.inputs)[0]
    found = held_by(task)
    assert any(item is pipeline.splits.train.targets for item in found)
    assert not any(item is pipeline.splits or item is pipeline for item in found)
    held = [item for item in found if isinstance(item, torch.Tensor)]
    assert len(held) > 10
    for secret in (test.inputs, test.targets, features):
        for tensor in held:
            assert tensor.shape != secret.shape or not torch.equal(tensor, secret)


def test_no_validation_can_reach_the_test_split(pipeline):
    validation = pipeline.validation(pipeline.metric(Unit("f1")))
    found = held_by(validation)
    assert any(item is pipeline.splits.observe.targets for item in found)
    secrets = (pipeline, pipeline.splits, pipeline.splits.test)
    assert not any(item is secret for item in found for secret in secrets)


def test_the_walk_would_find_a_leak(pipeline):
    task = pipeline.task(pipeline.metric(Unit("f1")))
    splits = pipeline.splits
    task.leak = {"deep": [lambda: splits]}
    assert any(item is splits.test.targets for item in held_by(task))


@pytest.mark.parametrize("name", list(METRICS))
def test_every_attribute_is_taken_over(name):
    metric = make_metric(name)
    wrapped = AuditedMetric(metric)
    declared = list(Metric.__annotations__)
    assert {"name", "needs_two_classes", "reads"} < set(declared)
    for attribute in declared:
        assert getattr(wrapped, attribute) == getattr(metric, attribute)

"""Tabular pipelines: splits, standardisation, seeds, and a network trained once."""

from dataclasses import replace

import pytest
import torch

from benchmarks.data.contract import Dataset
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular import pipeline as module
from benchmarks.problems.tabular.pipeline import (
    BinaryProblem,
    TabularPipeline,
    load_splits,
    standardisation,
)
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.problems.pipeline_cases import (
    CANCER,
    DIGIT,
    tabular,
    tabular_unit,
)


def _parts(splits):
    return splits.train, splits.observe, splits.test


@pytest.fixture
def numbered(monkeypatch):
    """Put in a data set of 200 whose binary features spell number and class."""
    number = torch.arange(200)
    bits = (number[:, None] >> torch.arange(8)) & 1
    targets = number % 3
    inputs = torch.cat([bits, targets[:, None] == 2], dim=1).float()
    data = Dataset("numbers", "full", "0" * 64, inputs, targets, ("a", "b", "c"), "")

    def load(name, variant, offline):
        assert (name, variant, offline) == ("numbers", "full", True)
        return data

    monkeypatch.setattr(module, "load_dataset", load)
    return BinaryProblem("numbers", "full", (2,))


def numbers_of(part):
    return (part.inputs[:, :8].long() << torch.arange(8)).sum(1).tolist()


def test_splits_are_disjoint_complete_and_70_10_20(numbered):
    splits = load_splits(numbered, 0)
    numbers = [numbers_of(part) for part in _parts(splits)]
    assert [len(part) for part in numbers] == [140, 20, 40]
    assert sorted(n for part in numbers for n in part) == list(range(200))
    assert sorted(numbers[0]) != list(range(140))
    assert (splits.variant, splits.digest) == ("numbers", "0" * 64)


@pytest.mark.parametrize("most", [None, 300, 5_000])
def test_a_problem_tells_how_many_examples_are_observed(most):
    problem = BinaryProblem("digits", "full", (8,), most)
    splits = load_splits(problem, 0)
    assert problem.observed == len(splits.observe)
    assert problem.observed == (30 if most == 300 else 180)


def test_examples_keep_their_labels_which_become_binary(numbered):
    for part in _parts(load_splits(numbered, 1)):
        assert torch.equal(part.targets, part.inputs[:, 8].long())
    for part in _parts(load_splits(replace(numbered, positive=(0, 1)), 1)):
        assert torch.equal(part.targets, 1 - part.inputs[:, 8].long())


def test_sizes_of_a_real_data_set():
    splits = load_splits(CANCER, 0)
    assert [len(part) for part in _parts(splits)] == [398, 57, 114]
    assert sum(int(part.targets.sum()) for part in _parts(splits)) == 212


def test_the_replicate_alone_decides_the_split():
    one, same, other = (load_splits(CANCER, replicate) for replicate in (0, 0, 1))
    for left, right in zip(_parts(one), _parts(same), strict=True):
        assert torch.equal(left.inputs, right.inputs)
        assert torch.equal(left.targets, right.targets)
    assert not torch.equal(one.train.targets, other.train.targets)


def test_train_statistics_standardise_every_split():
    splits = load_splits(CANCER, 0)
    train = splits.train.inputs
    torch.testing.assert_close(train.mean(0), torch.zeros(30), rtol=0, atol=1e-4)
    torch.testing.assert_close(train.std(0), torch.ones(30), rtol=0, atol=1e-4)
    # The other splits do not have statistics of their own.
    assert splits.test.inputs.mean(0).abs().max() > 1e-3


def test_fewer_examples_if_asked():
    splits = load_splits(replace(CANCER, max_examples=100), 0)
    assert [len(part) for part in _parts(splits)] == [70, 10, 20]


def test_binary_features_stay_as_they_are():
    inputs = torch.tensor([[0.0, 2.0, 5.0, 0.0], [1.0, 4.0, 5.0, 0.0]])
    centre, scale = standardisation(inputs)
    expected = [0.0, 3.0, 5.0, 0.0]
    assert centre.tolist() == expected
    # The deviation of 2 and 4 is sqrt(2); a constant feature becomes zero.
    assert scale.tolist() == pytest.approx([1.0, 2**0.5, 1e-6, 1.0])
    assert ((inputs - centre) / scale)[:, [0, 3]].equal(inputs[:, [0, 3]])


@pytest.mark.parametrize("positive", [(7,), (0, 1)])
def test_one_class_only_is_an_error(positive):
    expected = r"the train split of breast_cancer holds one class only; expected"
    with pytest.raises(DataError, match=expected) as caught:
        load_splits(replace(CANCER, positive=positive), 0)
    assert str(caught.value).endswith(f"of classes {list(positive)} and of others")


def test_seeds_differ_by_purpose_and_place():
    three = replace(DIGIT, positive=(3,))
    pipelines = [
        TabularPipeline(tabular(), 0),
        TabularPipeline(tabular(), 1),
        TabularPipeline(tabular(sampling="natural"), 0),
        TabularPipeline(tabular(problem=DIGIT), 0),
        TabularPipeline(tabular(problem=three), 0),
    ]
    purposes = (("theta",), ("adapter",), ("fine-tuning", "f1"), ("fine-tuning", "mcr"))
    seeds = [each.seeds.seed(*purpose) for each in pipelines for purpose in purposes]
    assert len(set(seeds)) == len(seeds)
    again = TabularPipeline(tabular(), 0)
    assert again.seeds.seed("theta") == pipelines[0].seeds.seed("theta")
    assert again.recorded_seeds == {
        "split": 0,
        "theta": again.seeds.seed("theta"),
        "adapter": again.seeds.seed("adapter"),
    }


def test_the_settings_of_a_spec_are_checked():
    unit = tabular_unit()
    found = make_pipeline(unit, 3)
    assert (found.settings, found.replicate) == (tabular(), 3)
    del unit.settings["sampling"], unit.settings["revision"]
    with pytest.raises(ConfigError, match=r"TabularSettings: .*sampling.*revision"):
        make_pipeline(unit, 0)
    with pytest.raises(ConfigError, match=r"unknown pipeline 'nope'; known: .*tabular"):
        make_pipeline(replace(unit, name="nope"), 0)


def test_theta_is_made_once_and_read_afterwards(monkeypatch):
    first = TabularPipeline(tabular(), 3).theta

    def fail(*arguments, **options):
        raise AssertionError("theta was trained again")

    monkeypatch.setattr(module, "train", fail)
    second = TabularPipeline(tabular(), 3).theta
    for left, right in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(left, right)


def test_theta_can_be_trained_after_its_adapter_was_made():
    pipeline = TabularPipeline(tabular(), 0)
    assert pipeline.adapter.size == 16
    assert all(weight.requires_grad for weight in pipeline.theta.parameters())


def test_a_network_starts_from_theta_or_from_the_weights_theta_started_from():
    pipeline = TabularPipeline(tabular(), 0)
    assert pipeline.network_start(from_theta=True) is pipeline.theta
    one, same = (pipeline.network_start(from_theta=False) for _ in range(2))
    assert one is not same and torch.equal(one[0].weight, same[0].weight)
    assert not torch.equal(one[0].weight, pipeline.theta[0].weight)


def test_training_shares_are_those_of_the_batches_theta_was_trained_on():
    assert TabularPipeline(tabular(), 0).training_shares.tolist() == [0.5, 0.5]
    natural = TabularPipeline(tabular(sampling="natural"), 0)
    positive = natural.splits.train.targets.double().mean().item()
    assert 0.3 < positive < 0.45
    assert natural.training_shares.tolist() == pytest.approx([1 - positive, positive])


def test_changes_reach_batches_and_training():
    pipeline = TabularPipeline(tabular(), 0)
    assert pipeline.batches({}).batch_size == 64
    assert pipeline.batches({}).balanced
    assert not TabularPipeline(tabular(sampling="natural"), 0).batches({}).balanced
    assert pipeline.training({}).epochs == 2
    changes = {"epochs": 1, "batch_size": 100, "learning_rate": 0.5}
    assert pipeline.batches(changes).batch_size == 100
    training = pipeline.training(changes)
    assert (training.epochs, training.learning_rate) == (1, 0.5)
    with pytest.raises(ConfigError, match="MLPBackbone has no setting rate; known: "):
        pipeline.training({"rate": 1.0})

"""Tasks: splits, standardisation, seeds, and that no task reaches the test split."""

import gc
import types

import pytest
import torch

from benchmarks import uci_bench
from benchmarks.datasets import load_dataset
from benchmarks.datasets.base import Dataset
from benchmarks.problems import CANCER, DIGIT
from benchmarks.protocol import Arm, Place, method
from benchmarks.tasks import bench_of, metric_of
from benchmarks.uci import spec
from benchmarks.uci_bench import UCIBench, load_splits, standardisation
from metricopt.errors import ConfigError, DataError

PROBLEM = {
    "dataset": "breast_cancer",
    "variant": "full",
    "positive": [0],
    "max_examples": None,
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep parsed data and artifacts of all tests here, and nowhere else."""
    cache = tmp_path_factory.getbasetemp() / "tasks-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    load_dataset.cache_clear()


def settings_of(problem=CANCER, block="balanced"):
    place = Place("table3", "smoke", block, "row", "f1", 0)
    settings = dict(spec(place, problem, "full", Arm(*method("untouched"))).settings)
    settings["backbone"] = settings["backbone"] | {"epochs": 2}
    return settings


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
    monkeypatch.setattr(uci_bench, "load_dataset", lambda *arguments: data)
    return {**PROBLEM, "dataset": "numbers", "positive": [2]}


def numbers_of(part):
    return (part.inputs[:, :8].long() << torch.arange(8)).sum(1).tolist()


def test_splits_are_disjoint_complete_and_70_10_20(numbered):
    splits = load_splits(numbered, 0)
    numbers = [numbers_of(part) for part in _parts(splits)]
    assert [len(part) for part in numbers] == [140, 20, 40]
    assert sorted(n for part in numbers for n in part) == list(range(200))
    assert sorted(numbers[0]) != list(range(140))
    assert (splits.variant, splits.digest) == ("numbers", "0" * 64)


def test_examples_keep_their_labels_which_become_binary(numbered):
    for part in _parts(load_splits(numbered, 1)):
        assert torch.equal(part.targets, part.inputs[:, 8].long())
    for part in _parts(load_splits(numbered | {"positive": [0, 1]}, 1)):
        assert torch.equal(part.targets, 1 - part.inputs[:, 8].long())


def test_sizes_of_a_real_data_set():
    splits = load_splits(PROBLEM, 0)
    assert [len(part) for part in _parts(splits)] == [398, 57, 114]
    assert sum(int(part.targets.sum()) for part in _parts(splits)) == 212


def test_the_replicate_alone_decides_the_split():
    one, same, other = (load_splits(PROBLEM, replicate) for replicate in (0, 0, 1))
    for left, right in zip(_parts(one), _parts(same), strict=True):
        assert torch.equal(left.inputs, right.inputs)
        assert torch.equal(left.targets, right.targets)
    assert not torch.equal(one.train.targets, other.train.targets)


def test_train_statistics_standardise_every_split():
    splits = load_splits(PROBLEM, 0)
    train = splits.train.inputs
    torch.testing.assert_close(train.mean(0), torch.zeros(30), rtol=0, atol=1e-4)
    torch.testing.assert_close(train.std(0), torch.ones(30), rtol=0, atol=1e-4)
    # The other splits do not have statistics of their own.
    assert splits.test.inputs.mean(0).abs().max() > 1e-3


def test_fewer_examples_if_asked():
    splits = load_splits(PROBLEM | {"max_examples": 100}, 0)
    assert [len(part) for part in _parts(splits)] == [70, 10, 20]


def test_binary_features_stay_as_they_are():
    inputs = torch.tensor([[0.0, 2.0, 5.0, 0.0], [1.0, 4.0, 5.0, 0.0]])
    centre, scale = standardisation(inputs)
    expected = [0.0, 3.0, 5.0, 0.0]
    assert centre.tolist() == expected
    # The deviation of 2 and 4 is sqrt(2); a constant feature becomes zero.
    assert scale.tolist() == pytest.approx([1.0, 2**0.5, 1e-6, 1.0])
    assert ((inputs - centre) / scale)[:, [0, 3]].equal(inputs[:, [0, 3]])


@pytest.mark.parametrize("positive", [[7], [0, 1]])
def test_one_class_only_is_an_error(positive):
    expected = r"the train split of breast_cancer holds one class only; expected"
    with pytest.raises(DataError, match=expected) as caught:
        load_splits(PROBLEM | {"positive": positive}, 0)
    assert str(caught.value).endswith(f"of classes {positive} and of others")


def test_seeds_differ_by_purpose_and_place():
    digits = settings_of(DIGIT)
    benches = [
        UCIBench(settings_of(), 0),
        UCIBench(settings_of(), 1),
        UCIBench(settings_of(block="natural"), 0),
        UCIBench(digits, 0),
        UCIBench(digits | {"problem": digits["problem"] | {"positive": [3]}}, 0),
    ]
    purposes = ("theta", "adapter", ("fine-tuning", "f1"), ("fine-tuning", "mcr"))
    seeds = [
        bench.seed(*([purpose] if isinstance(purpose, str) else purpose))
        for bench in benches
        for purpose in purposes
    ]
    assert len(set(seeds)) == len(seeds)
    again = UCIBench(settings_of(), 0)
    assert again.seed("theta") == benches[0].seed("theta")


def test_a_bench_is_kept_and_what_it_needs_is_checked():
    settings = settings_of()
    other_arm = settings | {"arm": {"kind": "threshold-shift"}, "meta_tests": 7}
    assert bench_of(settings, 0) is bench_of(other_arm, 0)
    assert bench_of(settings, 1) is not bench_of(settings | {"sampling": "natural"}, 1)
    del settings["sampling"], settings["finetune"]
    with pytest.raises(ConfigError, match="settings lack sampling, finetune"):
        bench_of(settings, 0)
    with pytest.raises(ConfigError, match="unknown metric 'nope'"):
        metric_of({"metric": "nope"})


def test_theta_is_made_once_and_read_afterwards(monkeypatch):
    settings = settings_of()
    first = UCIBench(settings, 3).theta

    def fail(*arguments, **options):
        raise AssertionError("theta was trained again")

    monkeypatch.setattr(uci_bench, "fit", fail)
    second = UCIBench(settings, 3).theta
    for left, right in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(left, right)


def test_theta_can_be_trained_after_its_adapter_was_made():
    bench = UCIBench(settings_of(), 0)
    assert bench.adapter.size == 16
    assert all(weight.requires_grad for weight in bench.theta.parameters())


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


@pytest.mark.parametrize("block", ["balanced", "natural"])
def test_no_task_can_reach_the_test_split(block):
    bench = UCIBench(settings_of(block=block), 0)
    task = bench.task(metric_of({"metric": "f1"}))
    test = bench.splits.test
    features = bench.adapter.encode(test.inputs)[0]
    found = held_by(task)
    assert any(item is bench.splits.train.targets for item in found)
    assert not any(item is bench.splits or item is bench for item in found)
    held = [item for item in found if isinstance(item, torch.Tensor)]
    assert len(held) > 10
    for secret in (test.inputs, test.targets, features):
        for tensor in held:
            assert tensor.shape != secret.shape or not torch.equal(tensor, secret)


def test_the_walk_would_find_a_leak():
    bench = UCIBench(settings_of(), 0)
    task = bench.task(metric_of({"metric": "f1"}))
    splits = bench.splits
    task.leak = {"deep": [lambda: splits]}
    assert any(item is splits.test.targets for item in held_by(task))

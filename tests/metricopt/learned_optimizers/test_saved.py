"""Files of learned optimizers: the same again, at any d, and what is refused."""

import json

import pytest
import torch
from safetensors.torch import save_file

from metricopt.errors import ConfigError
from metricopt.files import read_tensors
from metricopt.learned_optimizers import (
    MetricOptMLP,
    Unroll,
    load_optimizer,
    save_optimizer,
)
from metricopt.learned_optimizers.saved import FORMAT, _digest
from tests.metricopt.learned_optimizers.quadratics import Constant, Quadratics

INPUTS = ("gradient", "phi", "metric", "time")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "optimizer.safetensors"


@pytest.fixture
def saved(path):
    optimizer = MetricOptMLP(30, INPUTS, scale=0.3, exponent=0.5, seed=7)
    digest = save_optimizer(path, optimizer, tasks="quadratics of size 8")
    return optimizer, digest


def rewritten(path, *, keep_digest=False, **changes):
    """Write a file with other facts, as another program could."""
    tensors, metadata = read_tensors(path)
    metadata = metadata | changes
    facts = {n: v for n, v in metadata.items() if n not in ("format", "digest")}
    if not keep_digest:
        metadata["digest"] = _digest(tensors, facts)
    save_file(tensors, path, metadata)


def test_it_is_the_same_again_and_moves_another_size(path, saved):
    optimizer, digest = saved
    found = load_optimizer(path, inputs=INPUTS)
    assert (found.tasks, found.digest) == ("quadratics of size 8", digest)
    assert found.optimizer.settings() == optimizer.settings()
    assert not found.optimizer.training
    for size in (8, 3):
        tasks = [Quadratics(range(2)), Quadratics(range(2))]
        for each in tasks:
            each.start = each.start[:, :size]
            each.axes = each.axes[:, :size, :size]
            each.curvature = each.curvature[:, :size]
        one, other = (
            Unroll(each, family).advance(5).losses
            for each, family in zip((optimizer, found.optimizer), tasks, strict=True)
        )
        assert torch.equal(one, other)


def test_the_digest_is_of_weights_form_and_tasks(path, saved):
    optimizer, digest = saved
    assert save_optimizer(path, optimizer, tasks="quadratics of size 8") == digest
    assert save_optimizer(path, optimizer, tasks="others") != digest
    double = MetricOptMLP(30, INPUTS, scale=0.3, exponent=0.5, seed=7).double()
    assert save_optimizer(path, double, tasks="quadratics of size 8") != digest
    assert load_optimizer(path).optimizer.network[0].weight.dtype == torch.float64


def test_a_number_without_dimensions_is_saved(path, saved):
    optimizer, digest = saved
    optimizer.register_buffer("steps_taken", torch.tensor(3.0))
    assert save_optimizer(path, optimizer, tasks="quadratics of size 8") != digest


def test_other_inputs_are_refused(path, saved):
    with pytest.raises(ConfigError, match="for other inputs: expected gradient, loss;"):
        load_optimizer(path, inputs=("gradient", "loss"))


def test_a_horizon_of_0_is_refused(path, saved):
    settings = json.dumps(saved[0].settings() | {"horizon": 0})
    rewritten(path, settings=settings)
    with pytest.raises(ConfigError, match="needs horizon >= 1, got horizon=0"):
        load_optimizer(path)


def test_what_was_changed_is_refused(path, saved):
    rewritten(path, keep_digest=True, tasks="CIFAR-10")
    with pytest.raises(ConfigError, match="was changed after it was written"):
        load_optimizer(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "transformer"}, "unknown learned optimizer 'transformer'; known: "),
        ({"settings": '{"horizon": 5}'}, "does not fit a learned optimizer 'metric"),
        ({"settings": '{"steps": 5}'}, "does not fit a learned optimizer 'metric"),
        ({"format": "other-1"}, "must hold what save_optimizer writes, got the format"),
    ],
)
def test_a_file_of_another_kind_is_refused(path, saved, changes, message):
    rewritten(path, **changes)
    with pytest.raises(ConfigError, match=message):
        load_optimizer(path)


def test_files_that_are_none_are_refused(path):
    with pytest.raises(ConfigError, match="there is no file"):
        load_optimizer(path)
    path.parent.mkdir()
    path.write_bytes(b"phi")
    with pytest.raises(ConfigError, match="was not written by save_optimizer"):
        load_optimizer(path)
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(ConfigError, match="got the format of another program"):
        load_optimizer(path)
    assert FORMAT.startswith("metricopt-")


def test_what_cannot_be_saved(path):
    with pytest.raises(ConfigError, match="Constant must be registered before it is"):
        save_optimizer(path, Constant(0.0), tasks="lines")
    with pytest.raises(ConfigError, match="tasks must say what the optimizer was"):
        save_optimizer(path, MetricOptMLP(3), tasks="")
    assert not path.exists()

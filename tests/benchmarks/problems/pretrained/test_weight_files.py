"""Files of weights: tensors alone, and all that a network needs."""

import os
import pickle

import pytest
import torch

from benchmarks.problems.pretrained.base_weights import load_base
from metricopt.errors import DataError
from tests.benchmarks.problems.pretrained.weight_cases import (
    build,
    named,
    same,
    saved,
    state_of,
)


def test_half_weights_are_read_into_float32(tmp_path):
    other, network = build(seed=1), build()
    half = {name: value.half() for name, value in other.state_dict().items()}
    load_base(network, saved(tmp_path, half, "base.safetensors"), tmp_path)
    assert network.conv2.weight.dtype == torch.float32
    assert torch.equal(network.conv2.weight, other.conv2.weight.half().float())


def test_an_embedding_in_the_file_is_read_too(tmp_path):
    other, network = build(seed=1), build()
    load_base(network, saved(tmp_path, other.state_dict()), tmp_path)
    assert same(other.state_dict(), network.state_dict())


def test_counters_of_batch_norm_may_be_missing(tmp_path):
    other, network = build(seed=1), build()
    old = {n: v for n, v in other.state_dict().items() if "num_batches" not in n}
    load_base(network, saved(tmp_path, old), tmp_path)
    assert torch.equal(network.conv1.weight, other.conv1.weight)


def test_weights_that_do_not_fit_are_named(tmp_path):
    network, state = build(), build(seed=1).state_dict()
    before = state_of(network)
    state["conv1.weight"] = torch.zeros(16, 1, 3, 3)
    for name in ("bn1", "bn2"):
        del state[f"{name}.weight"], state[f"{name}.running_mean"]
    state["head.weight"] = torch.zeros(1)
    settings = saved(tmp_path, state)
    with pytest.raises(DataError) as caught:
        load_base(network, settings, tmp_path)
    assert str(caught.value) == (
        "base.pth does not fit the network: expected its 20 tensors by name, got "
        "4 missing (bn1.running_mean, bn1.weight, bn2.running_mean, ...); 1 unknown "
        "(head.weight); 1 of another shape (conv1.weight (16, 1, 3, 3) for "
        "(16, 3, 3, 3))"
    )
    assert same(before, network.state_dict())


def test_an_embedding_of_another_size_does_not_fit(tmp_path):
    settings = saved(tmp_path, build(size=9).state_dict())
    with pytest.raises(DataError, match=r"2 of another shape \(embedding.bias \(9,\)"):
        load_base(build(), settings, tmp_path)


class Foreign:
    """What a pickle of somebody else may run."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("dump", [torch.save, pickle.dump])
def test_a_pickle_that_runs_code_is_refused(tmp_path, dump):
    made = tmp_path / "made"
    path = tmp_path / "weights" / "base.pth"
    path.parent.mkdir()
    with path.open("wb") as file:
        dump({"conv1.weight": Foreign(made)}, file)
    with pytest.raises(DataError, match=r"base.pth is refused: .* may run code; save"):
        load_base(build(), named(path), tmp_path)
    assert not made.exists()


@pytest.mark.parametrize("saved_value", [[torch.zeros(1)], {"epoch": 3}, {1: "a"}])
def test_other_things_than_tensors_by_name_are_refused(tmp_path, saved_value):
    settings = saved(tmp_path, saved_value)
    kind = type(saved_value).__name__
    with pytest.raises(DataError, match=f"tensors by name, .* got {kind} of other"):
        load_base(build(), settings, tmp_path)

"""Files of weights and checkpoints of a training that are damaged or hostile."""

import pickle

import pytest
import torch
from torch.nn.functional import cross_entropy

from benchmarks.problems.pretrained.base_weights import load_base
from benchmarks.problems.pretrained.weights import assembled
from benchmarks.runs.artifacts import Artifact
from tests.benchmarks.problems.pretrained.weight_cases import (
    build,
    named,
    same,
    saved,
    state_of,
)
from tests.robustness.hostile import assert_refused, packed_again, torch_bytes, within


def nan(state):
    state["conv2.weight"][0, 0, 0, 0] = torch.nan


def holed(weight):
    return torch.where(torch.arange(weight.shape[-1]) > 0, weight, torch.nan)


FINITE, TYPE = "1 not finite (conv2.weight)", "1 of another type (conv2.weight torch."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (holed, FINITE),
        (lambda weight: weight.double() * 1e300, FINITE),
        (
            lambda weight: (weight * 100).to(torch.int8),
            f"{TYPE}int8 for torch.float32)",
        ),
        (lambda weight: weight * 1j, f"{TYPE}complex64 for"),
        (torch.Tensor.to_sparse, f"{TYPE}float32 for"),
        (lambda weight: weight.to("meta"), f"{TYPE}float32 for"),
    ],
)
@pytest.mark.filterwarnings("ignore:Validating sparse tensor invariants")
def test_weights_that_mean_nothing_are_named_and_not_loaded(tmp_path, change, said):
    """They were copied: a network of NaN, or of rounded weights, was trained on."""
    network, state = build(), build(seed=1).state_dict()
    before = state_of(network)
    state["conv2.weight"] = change(state["conv2.weight"])
    with assert_refused("base.pth does not fit the network: ", said):
        load_base(network, saved(tmp_path, state), tmp_path)
    assert same(before, network.state_dict())


def raw(root, content, name="base.pth"):
    path = root / "weights" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return named(path)


WHOLE = torch_bytes(build(seed=1).state_dict())
BOMB = packed_again(torch_bytes({"conv2.weight": torch.zeros(1 << 24)}))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (BOMB, "bytes that unpack to 67,10"),
        (WHOLE[:-400], "got a damaged file or one that may run code"),
        (WHOLE[:400], "got a damaged file or one that may run code"),
        (pickle.dumps({"a": 1.5})[:-3], "got a damaged file or one that may run code"),
        (b"\x80\x02}q\x00(X\xff\xff\xff\x7f", "got a damaged file or one that may"),
        (b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.", "got a damaged file or"),
        (b"(" * 100_000 + b".", "got a damaged file or one that may run code"),
    ],
)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_checkpoint_that_is_damaged_or_explodes_is_refused(tmp_path, content, said):
    with within(megabytes=600), assert_refused("base.pth is refused: expected", said):
        load_base(build(), raw(tmp_path, content), tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xff\xff\xff\xff\xff\xff\x7f{}",
        (2).to_bytes(8, "little") + b"{}" + b"more",
        (90).to_bytes(8, "little")
        + b'{"a":{"dtype":"F32","shape":[9999999999],"data_offsets":[0,39999999996]}}',
        (60).to_bytes(8, "little")
        + b'{"a":{"dtype":"X9","shape":[1],"data_offsets":[0,4]}}'.ljust(60)
        + bytes(4),
    ],
)
def test_a_safetensors_file_that_lies_of_its_size_is_refused(tmp_path, content):
    settings = raw(tmp_path, content, "base.safetensors")
    with within(megabytes=400), assert_refused("base.safetensors "):
        load_base(build(), settings, tmp_path)


def give(network, state):
    kept = Artifact(state, {})
    assembled(network, cross_entropy, kept, "drawn-resnet-r0", "classifier-theta")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: state.pop("conv2.weight"), "1 missing (conv2.weight)"),
        (lambda state: state.update(more=torch.zeros(1)), "1 unknown (more)"),
        (lambda state: state.update({"bn1.bias": torch.zeros(3)}), "of another shape"),
        (nan, "1 not finite (conv2.weight)"),
    ],
)
def test_a_kept_network_that_does_not_fit_names_the_way_out(change, said):
    network, state = build(), build(seed=1).state_dict()
    before = state_of(network)
    change(state)
    way_out = "run `./reproduce.sh cache clear classifier-theta`, and restore results"
    with assert_refused("drawn-resnet-r0 does not fit the network", said, way_out):
        give(network, state)
    assert same(before, network.state_dict())


def test_a_kept_network_is_given_with_what_its_loss_learned():
    network, other = build(), build(seed=1)
    give(network, {**other.state_dict(), "loss.weight": torch.zeros(1)})
    assert same(other.state_dict(), network.state_dict())

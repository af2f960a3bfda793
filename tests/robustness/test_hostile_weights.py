"""Weights and states of a training that are damaged, hostile, or of something else."""

import io
import os
import pickle
import zipfile

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from baselines.training.batches import PermutedBatches
from baselines.training.checkpoint import Checkpoint, read_checkpoint
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.selection import BestState, Epoch
from benchmarks.problems.pretrained.base_weights import load_base
from benchmarks.problems.pretrained.weights import assembled
from benchmarks.runs.artifacts import Artifact
from metricopt.errors import DivergedError
from metricopt.process.seeding import make_generator
from tests.baselines.toy_images import ToyImages, image_network
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
        *((content, "a checkpoint") for content in (b"", b"PK\x03\x04", bytes(99))),
    ],
)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_checkpoint_that_is_damaged_or_explodes_is_refused(tmp_path, content, said):
    with within(megabytes=600), assert_refused("base.pth is refused: expected", said):
        load_base(build(), raw(tmp_path, content), tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"\xff" * 64),
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
    with within(megabytes=400), assert_refused("base.safetensors is no safetensors"):
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


def new_run(optimizer="adam", epochs=3):
    training = Training(epochs, 0.01, optimizer=optimizer, keep_best=False)
    return TrainingRun(
        image_network(),
        nn.CrossEntropyLoss(),
        PermutedBatches(ToyImages(), 16),
        training,
        generator=make_generator("images"),
    )


class Call:
    """What a pickle of somebody else may run."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a checkpoint after two epochs of three."""
    run, path = new_run(), tmp_path_factory.mktemp("sound") / "c.pt"
    for _ in range(2):
        run.run_epoch()
    Checkpoint(path, "k").write(run, Hooks())
    return path.read_bytes()


def flipped(content):
    """Change one bit of a weight."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        longest = max(packed.infolist(), key=lambda member: member.file_size)
        at = content.index(packed.read(longest)) + longest.file_size // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        lambda content: content[:-100],
        lambda content: content[:1_000],
        lambda content: b"",
        lambda content: pickle.dumps([1]),
        lambda content: packed_again(torch_bytes({"a": torch.zeros(1 << 24)})),
    ],
)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_damaged_checkpoint_is_said_and_not_used(tmp_path, whole, damage):
    """A flipped bit went into the network unseen."""
    path = tmp_path / "c.pt"
    path.write_bytes(damage(whole))
    with pytest.warns(UserWarning, match=f"checkpoint {path} is damaged, the training"):
        assert read_checkpoint(path, "k") is None


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_checkpoint_runs_no_code(tmp_path):
    path = tmp_path / "c.pt"
    torch.save({"key": "k", "training": Call(tmp_path / "made")}, path)
    with pytest.warns(UserWarning, match="or one that may run code"):
        assert read_checkpoint(path, "k") is None
    assert not (tmp_path / "made").exists()


def put(value, *names):
    """Return what puts a value into a state, at the place of these names."""

    def change(state):
        *way, last = names
        for name in way:
            state = state[name]
        state[last] = value

    return change


def more_weights(state):
    state["optimizer"]["param_groups"][0]["params"].append(99)


def nan_weights(state):
    state["network"]["4.weight"][0, 0] = torch.nan


HOSTILE = {
    "no network": lambda state: state.pop("network"),
    "no optimiser": lambda state: state.pop("optimizer"),
    "no losses": lambda state: state.pop("losses"),
    "a network of NaN": nan_weights,
    "a best network of another shape": put(
        torch.zeros(1), "best", "weights", "4.weight"
    ),
    "a network of another shape": put(torch.zeros(3), "network", "4.bias"),
    "moments of another shape": put(torch.zeros(3), "optimizer", "state", 0, "exp_avg"),
    "more weights than there are": more_weights,
    "more losses than epochs": put([0.1] * 9, "losses"),
    "a loss of NaN": put([0.1, float("nan")], "losses"),
    "losses that are none": put(["a", "b"], "losses"),
    "a list for a network": put([1], "network"),
    "no state of a generator": put(torch.zeros(3), "generator"),
    "no random state": put([torch.zeros(3, dtype=torch.uint8)], "randomness"),
    "settings that are a number": put(3, "training"),
    "states of nothing that is trained": put([], "beside"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_checkpoint_of_something_else_names_the_way_out(tmp_path, whole, name):
    path = tmp_path / "c.pt"
    path.write_bytes(whole)
    state = read_checkpoint(path, "k")
    HOSTILE[name](state)
    torch.save(state, path)
    with assert_refused(f"{path} holds no state of this training: ", "delete it to"):
        train(new_run(), checkpoint=Checkpoint(path, "k"))


def test_weights_that_overflow_in_the_last_step_are_not_kept():
    """The loss is finite until the next step, and after the last one there is none."""
    network = image_network()
    best = BestState(network, keep_best=False)
    before = state_of(network)
    with torch.no_grad():
        network[4].weight[0, 0] = torch.inf
    with pytest.raises(DivergedError, match="a weight became non-finite in epoch 3 of"):
        best.offer(Epoch(3, 3, 0.5))
    best.put_back()
    assert same(before, network.state_dict())

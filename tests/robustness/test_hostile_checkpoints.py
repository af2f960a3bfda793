"""The state of a training on disk that is damaged, hostile, or of something else."""

import io
import os
import pickle
import zipfile

import pytest
import torch
from torch import nn

from baselines.training.batches import PermutedBatches
from baselines.training.checkpoint import read_checkpoint, write_checkpoint
from baselines.training.loop import TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.selection import BestState, Epoch
from metricopt.errors import DivergedError
from metricopt.process.seeding import make_generator
from tests.baselines.toy_images import ToyImages, image_network
from tests.benchmarks.problems.pretrained.weight_cases import same, state_of
from tests.robustness.hostile import assert_refused, packed_again, torch_bytes


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
    write_checkpoint(path, "k", run.state())
    return path.read_bytes()


@pytest.fixture(scope="module")
def undisturbed():
    run = new_run()
    train(run)
    return run


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
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_checkpoint_of_something_else_names_the_way_out(tmp_path, whole, name):
    path = tmp_path / "c.pt"
    path.write_bytes(whole)
    state = read_checkpoint(path, "k")
    HOSTILE[name](state)
    torch.save(state, path)
    with assert_refused(f"{path} holds no state of this training: ", "delete it to"):
        train(new_run(), checkpoint=path, key="k")


def test_a_sound_checkpoint_goes_on_as_before(tmp_path, whole, undisturbed):
    path, run = tmp_path / "c.pt", new_run()
    path.write_bytes(whole)
    train(run, checkpoint=path, key="k")
    assert run.losses == undisturbed.losses
    assert same(run.network.state_dict(), undisturbed.network.state_dict())


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

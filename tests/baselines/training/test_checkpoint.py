"""A killed training goes on from its checkpoint with the same numbers."""

import pytest
import torch

from baselines.training.checkpoint import (
    Checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from baselines.training.loop import Hooks, train
from baselines.training.optimization import Training
from metricopt.errors import ConfigError
from tests.baselines.training.runs import image_run, make_run, same, weights


def short_run(loss="cross-entropy", *, epochs=3, schedule="one-cycle"):
    settings = {"optimizer": "sgd", "schedule": schedule, "keep_best": False}
    return image_run(Training(epochs, 0.05, **settings), loss)


def kill_after(number):
    """The epoch is over then, and its checkpoint not written yet."""

    def stop(epoch):
        if epoch.number == number:
            raise KeyboardInterrupt

    return Hooks(stop)


@pytest.mark.parametrize("schedule", ["one-cycle", "steps", "constant"])
@pytest.mark.parametrize("loss", ["cross-entropy", "aucpr"])
def test_a_killed_training_ends_as_an_undisturbed_one(tmp_path, loss, schedule):
    undisturbed = short_run(loss, schedule=schedule)
    train(undisturbed)
    checkpoint = Checkpoint(tmp_path / "folder" / "b.pt", "k")
    killed = short_run(loss, schedule=schedule)
    with pytest.raises(KeyboardInterrupt):
        train(killed, checkpoint=checkpoint, hooks=kill_after(3))
    assert len(read_checkpoint(checkpoint.path, "k")["losses"]) == 2
    again = short_run(loss, schedule=schedule)
    train(again, checkpoint=checkpoint)
    assert same(weights(again), weights(undisturbed))
    assert again.losses == undisturbed.losses
    assert len(again.seconds) == 3


def test_dropout_balance_and_the_best_epoch_survive(tmp_path, network, data):
    start = weights(network)

    def new_run():
        network.load_state_dict(start)
        return make_run(network, data, epochs=4, learning_rate=0.3)

    best = train(new_run())
    expected = weights(network)
    checkpoint = Checkpoint(tmp_path / "c.pt")
    with pytest.raises(KeyboardInterrupt):
        train(new_run(), checkpoint=checkpoint, hooks=kill_after(3))
    again = train(new_run(), checkpoint=checkpoint)
    assert (again.epoch, again.score) == (best.epoch, best.score)
    assert same(weights(network), expected)


def test_a_finished_training_is_not_repeated(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c.pt")
    done = short_run()
    train(done, checkpoint=checkpoint)
    again, epochs = short_run(), []
    train(again, checkpoint=checkpoint, hooks=Hooks(epochs.append))
    assert (epochs, again.epoch) == ([], 3)
    assert same(weights(again), weights(done))
    assert not again.network.training


def test_global_randomness_borrowed_without_dropout_goes_on():
    draws = []
    for interrupted in (False, True):
        run = short_run()
        with run.randomness():
            first = torch.rand(2)
        if interrupted:
            state = run.state()
            run = short_run()
            run.restore(state)
        with run.randomness():
            draws.append((first, torch.rand(2)))
    assert torch.equal(draws[0][0], draws[1][0])
    assert torch.equal(draws[0][1], draws[1][1])
    assert not torch.equal(*draws[0])


def test_a_checkpoint_of_another_run_is_ignored(tmp_path):
    checkpoint = tmp_path / "c.pt"
    write_checkpoint(checkpoint, "other", {**short_run().state(), "beside": []})
    assert read_checkpoint(checkpoint, "mine") is None
    assert read_checkpoint(checkpoint, "other")["losses"] == []
    run = short_run()
    train(run, checkpoint=Checkpoint(checkpoint, "mine"))
    assert run.epoch == 3


def test_a_checkpoint_without_settings_is_ignored(tmp_path):
    checkpoint = tmp_path / "c.pt"
    torch.save({"key": "k", "recipe": {}}, checkpoint)
    assert read_checkpoint(checkpoint, "k") is None


def test_the_state_of_other_settings_is_refused():
    other = short_run(epochs=4)
    with pytest.raises(ConfigError, match=r"expected the state of .*'epochs': 3"):
        short_run().restore(other.state())

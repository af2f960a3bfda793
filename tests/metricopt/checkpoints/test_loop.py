"""A meta-training that is stopped and called again ends as one that was not."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from metricopt.errors import ConfigError, DataError
from tests.metricopt.checkpoints.trainings import (
    EACH,
    TRAININGS,
    same,
    without_time,
)


class Stopped(KeyboardInterrupt):
    pass


@pytest.mark.parametrize("name", TRAININGS)
def test_an_interrupted_training_ends_as_an_undisturbed_one(name, tmp_path):
    training, path = TRAININGS[name], tmp_path / "folder" / "state.pt"
    expected = training.fresh(0)
    whole = training.run(expected, training.tasks, training.settings)
    assert not same(training.fresh(0), expected)
    for stop in (1, 4):

        def stopping(numbers, stop=stop):
            if numbers[0] == EACH * stop:
                raise Stopped
            return training.tasks(numbers)

        torch.rand(stop)  # what others draw does not matter
        fresh = training.fresh(0)
        with pytest.raises(Stopped):
            training.run(fresh, stopping, training.settings, checkpoint=path)
    for _ in range(2):
        trained = training.fresh(0)
        found = training.run(
            trained, training.tasks, training.settings, checkpoint=path
        )
        assert same(trained, expected)
        assert without_time(found) == without_time(whole)


@pytest.mark.parametrize("name", ["few-shot-adam", "strategies"])
def test_what_an_interrupted_training_left_begins_another_one(name, tmp_path):
    training = TRAININGS[name]

    def stopping(numbers):
        if numbers[0] == EACH * 2:
            raise Stopped
        return training.tasks(numbers)

    left = training.fresh(0)
    with pytest.raises(Stopped):
        training.run(left, stopping, training.settings, checkpoint=tmp_path / "one")
    assert not same(training.fresh(0), left)
    training.run(left, training.tasks, training.settings, checkpoint=tmp_path / "two")
    with pytest.raises(ConfigError, match="expected start"):
        training.run(
            training.fresh(0),
            training.tasks,
            training.settings,
            checkpoint=tmp_path / "two",
        )


KILLED = """
import sys, time
from tests.metricopt.checkpoints.trainings import TRAININGS

def slow(numbers):
    time.sleep(0.2)
    return training.tasks(numbers)

training = TRAININGS[sys.argv[1]].longer(20)
training.run(training.fresh(0), slow, training.settings, checkpoint=sys.argv[2])
"""


@pytest.mark.parametrize("name", ["few-shot-adam", "strategies"])
def test_a_killed_process_is_continued_bit_for_bit(name, tmp_path):
    path, training = tmp_path / "state.pt", TRAININGS[name].longer(20)
    process = subprocess.Popen([sys.executable, "-P", "-c", KILLED, name, str(path)])
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    done = torch.load(path)["numbers"][0]
    assert 0 < done < 20
    expected, trained = training.fresh(0), training.fresh(0)
    whole = training.run(expected, training.tasks, training.settings)
    found = training.run(trained, training.tasks, training.settings, checkpoint=path)
    assert same(trained, expected)
    assert without_time(found) == without_time(whole)


@pytest.mark.parametrize("name", ["few-shot-adam", "strategies"])
def test_another_start_is_another_training(name, tmp_path):
    training, path = TRAININGS[name], tmp_path / "state.pt"
    trained = training.fresh(0)
    training.run(trained, training.tasks, training.settings, checkpoint=path)
    for other in (training.fresh(1), trained):
        with pytest.raises(
            ConfigError, match=r"expected .*start \w{12}.*, got .*start"
        ):
            training.run(other, training.tasks, training.settings, checkpoint=path)


@pytest.mark.parametrize("name", ["few-shot-adam", "strategies"])
def test_what_was_interrupted_goes_on_with_the_same_object(name, tmp_path):
    training, path = TRAININGS[name], tmp_path / "state.pt"
    expected, trained = training.fresh(0), training.fresh(0)
    training.run(expected, training.tasks, training.settings)

    def stopping(numbers):
        if numbers[0] == EACH * 4:
            raise Stopped
        return training.tasks(numbers)

    with pytest.raises(Stopped):
        training.run(trained, stopping, training.settings, checkpoint=path)
    assert not same(trained, training.fresh(0))
    training.run(trained, training.tasks, training.settings, checkpoint=path)
    assert same(trained, expected)


@pytest.mark.parametrize("name", ["few-shot-adam", "strategies"])
def test_a_state_of_other_settings_or_a_damaged_one_is_refused(name, tmp_path):
    path, training = tmp_path / "state.pt", TRAININGS[name]
    training.run(training.fresh(0), training.tasks, training.settings, checkpoint=path)
    other = training.longer(7)
    with pytest.raises(ConfigError, match="is of another meta-training; expected"):
        other.run(other.fresh(0), other.tasks, other.settings, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="delete it to begin anew") as caught:
        training.run(
            training.fresh(0), training.tasks, training.settings, checkpoint=path
        )
    assert "got a damaged file or one that may run code" in str(caught.value)
    assert "weights_only" not in str(caught.value)
    with pytest.raises(ConfigError, match="checkpoint must be a file, got the folder"):
        training.run(
            training.fresh(0), training.tasks, training.settings, checkpoint=tmp_path
        )


@pytest.mark.parametrize(("save_every", "expected"), [(0, True), (1e6, False)])
def test_states_are_saved_by_the_clock_and_at_the_end(save_every, expected, tmp_path):
    training, path = TRAININGS["strategies"], tmp_path / "state.pt"
    seen = []

    def watched(numbers):
        seen.append(path.exists())
        return training.tasks(numbers)

    settings = replace(training.settings, save_every=save_every)
    training.run(training.fresh(0), watched, settings, checkpoint=path)
    assert seen == [False] + [expected] * 5
    assert torch.load(path)["numbers"][0] == 6

"""Episodes: stacked from tasks, one by one again, on a device; what is refused."""

import re

import pytest
import torch

from metricopt.errors import ConfigError, ShapeError
from metricopt.fewshot import Episodes
from tests.metricopt.fewshot.drawn_episodes import line


def test_stacked_tasks_are_there_one_by_one():
    tasks = [line(number) for number in range(3)]
    episodes = Episodes.stacked(tasks)
    assert len(episodes) == 3
    assert episodes.support_inputs.shape == (3, 3, 1)
    for task, (support, query) in zip(tasks, episodes.one_by_one(), strict=True):
        assert all(map(torch.equal, task, (*support, *query)))
    moved = episodes.to("meta")
    assert {each.device.type for each in moved.tensors()} == {"meta"}
    assert moved.query_targets.shape == episodes.query_targets.shape


def test_tasks_that_cannot_be_stacked_are_refused():
    a, b, c, d = line(0)
    for tasks, error, message in (
        ([(a, b, c, d), (a, b, c[:2], d)], ShapeError, "[3, 1] and [2, 1]"),
        ([(a, b, c)], ConfigError, "must be four tensors, support_inputs, "),
        ([(a, b, c, 1.0)], ConfigError, "got a tuple of 4: Tensor, Tensor, "),
        ([], ConfigError, "got no task"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            Episodes.stacked(tasks)

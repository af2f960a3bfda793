"""The time that tasks take with some workers, by hand and from records."""

import pytest

from benchmarks.execution.networks import networks_of
from benchmarks.execution.planned import Task, predicted, preparation, tasks_of
from benchmarks.tables.registry import find_experiment


@pytest.mark.parametrize(
    ("workers", "wall", "bottleneck"),
    # Two workers: 4 and then 3, beside 5 and then 1. Nobody is faster than 4 + 3.
    [(1, 13.0, ""), (2, 7.0, "chain of tasks"), (9, 7.0, "chain of tasks")],
)
def test_a_free_worker_takes_the_first_task_that_can_start(workers, wall, bottleneck):
    tasks = [Task(4.0), Task(5.0), Task(3.0, (0,)), Task(1.0)]
    found = predicted(tasks, workers)
    assert (found.work, found.longest, found.path) == (13.0, 5.0, 7.0)
    assert (found.wall, found.bottleneck) == (wall, bottleneck)


def test_the_longest_run_bounds_the_time_and_nothing_takes_none():
    found = predicted([Task(6.0), Task(1.0), Task(1.0)], 2)
    assert (found.wall, found.bottleneck) == (6.0, "longest run")
    assert predicted([], 3).wall == 0.0


def test_a_worker_stays_idle_until_what_is_needed_has_ended():
    # The second worker waits from 1 to 4; the last two tasks go side by side.
    tasks = [Task(4.0), Task(1.0), Task(2.0, (0, 1)), Task(2.0, (0,))]
    assert predicted(tasks, 2).wall == 6.0
    assert predicted(tasks, 1).wall == 9.0


def test_runs_wait_for_their_network_and_for_what_the_first_prepares():
    specs = find_experiment("mismatch").specs("smoke", 1, offline=True)
    networks = {network.digest: 100.0 for network in networks_of(specs)}
    seconds = {spec.digest: 1.0 for spec in specs}
    tasks = tasks_of(specs, seconds, networks)
    assert len(tasks) == len(networks) + len(specs)
    assert all(task.after for task in tasks[len(networks) :])
    prepared = {preparation(spec) for spec in specs} - {""}
    several = [task for task in tasks if len(task.after) == 2]
    sharing = [spec for spec in specs if preparation(spec)]
    assert len(several) == len(sharing) - len(prepared) > 0
    assert predicted(tasks, 1000).wall == 102.0
    assert predicted(tasks_of(specs, seconds, {}), 1000).wall == 2.0

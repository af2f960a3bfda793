"""How long runs will take, from those that were measured, and their order."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from statistics import fmean

from benchmarks.arms.contract import ARMS
from benchmarks.execution.networks import networks_of
from benchmarks.execution.runner import in_groups
from benchmarks.runs.codec import canonical, encode
from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec


def planned_seconds(
    specs: Sequence[RunSpec], records: Iterable[RunRecord]
) -> dict[str, float]:
    """Return the seconds that runs are likely to take, by digest.

    The mean of the nearest records: of the row in its column and block, of the row in
    its column, of the row. Runs of a row without any record are left out.

    Args:
        specs: the runs.
        records: what was measured, in any experiment or tier.
    """
    known: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for record in measured(records):
        for place in _places(record.spec):
            known[place].append(record.total_seconds)
    found = {}
    for spec in specs:
        nearest = next((p for p in _places(spec) if p in known), None)
        if nearest is not None:
            found[spec.digest] = fmean(known[nearest])
    return found


def measured(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Return the records that say how long a run takes: those of runs that ended."""
    return [record for record in records if record.status == "done"]


def _places(spec: RunSpec) -> tuple[tuple[str, ...], ...]:
    row, column = spec.row, spec.column
    return (row, column, spec.block), (row, column), (row,)


def longest_first(
    specs: Sequence[RunSpec], seconds: Mapping[str, float]
) -> list[RunSpec]:
    """Return runs in the order in which they are handed to a cluster."""
    line = [spec for group in in_groups(specs) for spec in group]
    return sorted(line, key=lambda s: seconds.get(s.digest, 0.0), reverse=True)


def preparation(spec: RunSpec) -> str:
    """Return the identity of what a run prepares on its pipeline; empty for nothing."""
    own = ARMS.get(spec.arm.kind).prepares(spec)
    return canonical([encode(spec.pipeline), spec.replicate, own]) if own else ""


@dataclass(frozen=True)
class Task:
    """Something that one worker does.

    Attributes:
        seconds: how long it takes.
        after: places of the tasks that have to end before it starts, all before it.
    """

    seconds: float
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """How long tasks take, in seconds.

    Attributes:
        work: all of them, one after the other.
        longest: the longest one.
        path: the longest chain of tasks that wait for each other: no number of workers
            is faster.
        wall: with the workers that there are.
    """

    work: float
    longest: float
    path: float
    wall: float

    @property
    def bottleneck(self) -> str:
        """What more workers would not change, in words; empty if they would help."""
        if self.wall > 1.05 * self.path:
            return ""
        return "longest run" if self.path <= 1.05 * self.longest else "chain of tasks"


def tasks_of(
    specs: Sequence[RunSpec],
    seconds: Mapping[str, float],
    trainings: Mapping[str, float],
) -> list[Task]:
    """Return runs as the tasks of a cluster, after the networks they start from.

    The first of several runs that need the same value function makes it; they wait.

    Args:
        specs: the runs.
        seconds: how long they take, by digest; a run that is not named takes no time.
        trainings: seconds of networks that have to be trained, by digest.
    """
    tasks, places = [], dict[str, int]()
    for network in networks_of(specs):
        if network.digest in trainings:
            after = tuple(places[n.digest] for n in network.warm if n.digest in places)
            places[network.digest] = len(tasks)
            tasks.append(Task(trainings[network.digest], after))
    for spec in longest_first(specs, seconds):
        needed = [network.digest for network in networks_of([spec])]
        key = preparation(spec)
        after = tuple(places[name] for name in (*needed, key) if name in places)
        if key:
            places.setdefault(key, len(tasks))
        tasks.append(Task(seconds.get(spec.digest, 0.0), after))
    return tasks


def predicted(tasks: Sequence[Task], workers: int) -> Prediction:
    """Return how long tasks take with some workers.

    A worker that is free takes the first task that nothing has to be done for.

    Args:
        tasks: in the order in which they are handed over.
        workers: number of workers.
    """
    path = list[float]()
    for task in tasks:
        path.append(task.seconds + max((path[at] for at in task.after), default=0.0))
    lengths = [task.seconds for task in tasks]
    return Prediction(
        work=sum(lengths),
        longest=max(lengths, default=0.0),
        path=max(path, default=0.0),
        wall=_wall(tasks, workers),
    )


def _wall(tasks: Sequence[Task], workers: int) -> float:
    left = [len(task.after) for task in tasks]
    followers = defaultdict(list)
    for place, task in enumerate(tasks):
        for before in task.after:
            followers[before].append(place)
    ready = [place for place, count in enumerate(left) if not count]
    running, now = list[tuple[float, int]](), 0.0
    while ready or running:
        while ready and len(running) < workers:
            place = heappop(ready)
            heappush(running, (now + tasks[place].seconds, place))
        now, ended = heappop(running)
        for place in followers[ended]:
            left[place] -= 1
            if not left[place]:
                heappush(ready, place)
    return now

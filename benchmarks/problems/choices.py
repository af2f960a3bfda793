"""What an arm can choose, and how the pipeline it was chosen on judges it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from benchmarks.runs.record import NETWORK
from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric
from metricopt.reading.columns import columned, columns_of
from metricopt.reading.outputs import Outputs, each, joined
from metricopt.tasks.encoding import Encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.judge import Judge

Values = dict[str, Tensor]
"""Native values [R] of several metrics, by the label of the metric."""


@dataclass(frozen=True)
class Adapted:
    """The frozen network with R rows of adapter parameters.

    Attributes:
        phi: adapter parameters, shape [R, d].
    """

    phi: Tensor

    @property
    def rows(self) -> int:
        """Results that are chosen at once."""
        return len(self.phi)


@dataclass(frozen=True)
class Trained:
    """A network of its own.

    Attributes:
        predict: returns the outputs of inputs [n, ...], a tuple of them where the
            network has several: [n, C], or a tuple of tensors [n, ...] where the
            network returns one.
    """

    predict: Callable[[Any], Outputs]
    rows: ClassVar[int] = 1


@dataclass(frozen=True)
class Shifted:
    """The untouched network, its outputs changed afterwards.

    Attributes:
        shift: returns outputs [N, ...] to be judged, given those of the network; a
            tuple of tensors where the network returns one.
    """

    shift: Callable[[Any], Outputs]
    rows: ClassVar[int] = 1


class Course(Protocol):
    """What adapts to episodes and keeps how it went."""

    def outputs(self, episodes: Any, /) -> Tensor:
        """Return the outputs on the queries of B episodes, [B, Q, ...]."""

    def notes(self) -> dict[str, Any]:
        """Return notes of how it adapted to all episodes so far."""


@dataclass(frozen=True)
class OnEpisodes:
    """A learner of few-shot tasks, which adapts to each of them.

    Attributes:
        outputs: returns the outputs on the queries of B episodes, [B, Q, ...].
        course: adapts to the episodes to test in the place of `outputs`, and keeps
            notes of how; None where nothing is to be kept.
    """

    outputs: Callable[[Any], Tensor]
    course: Course | None = None
    rows: ClassVar[int] = 1


Choice = Adapted | Trained | Shifted | OnEpisodes


@dataclass(frozen=True)
class Point:
    """A state an arm passed through.

    Attributes:
        step: gradient steps taken so far.
        queries: metric queries one result is charged with so far.
        observe: the metric of the run on observe, native units, shape [R]; None where
            it was not observed.
        choice: what the arm would have returned here.
    """

    step: int
    queries: int
    observe: tuple[float, ...] | None
    choice: Choice


@dataclass(frozen=True)
class Chosen:
    """What an arm chose and what it spent.

    Attributes:
        choice: what is judged.
        queries: metric queries charged to one result, shared ones included.
        shared_queries: the part of `queries` spent once for all rows.
        gradient_steps: steps taken by each row.
        evaluations: metric queries that were counted in this run, by what they were
            made on: `observe`, `train` or `test`.
        prepared: the same for what was prepared once and is shared with other runs.
        points: the way there, in order of steps and queries.
        notes: further figures by name.
        seconds: wall seconds of named phases.
        shares: how often the shared queries were made, each time for as many rows.
    """

    choice: Choice
    queries: int = 0
    shared_queries: int = 0
    gradient_steps: int = 0
    evaluations: Mapping[str, int] = field(default_factory=dict)
    prepared: Mapping[str, int] = field(default_factory=dict)
    points: tuple[Point, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    shares: int = 1

    @property
    def reported(self) -> int:
        """All metric queries by the arm's own account: of every row, and shared."""
        own = self.queries - self.shared_queries
        return self.choice.rows * own + self.shares * self.shared_queries

    @property
    def queried(self) -> dict[str, int]:
        """All metric queries that were counted, by what they were made on."""
        total = Counter(self.evaluations)
        total.update(self.prepared)
        return dict(total)


@dataclass(frozen=True)
class NetworkCost:
    """Cost of training the network that a run starts from.

    Attributes:
        queries: metric queries, by the split they were made on.
        gradient_steps: steps on its weights.
        seconds: wall seconds.
        notes: further figures by name, numbers or lists of them.
    """

    queries: Mapping[str, int] = field(default_factory=dict)
    gradient_steps: int = 0
    seconds: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)


def charged(chosen: Chosen, cost: NetworkCost) -> Chosen:
    """Return a choice that is charged with the training of its network."""
    made, steps = sum(cost.queries.values()), cost.gradient_steps
    if not steps:
        return chosen
    return replace(
        chosen,
        queries=chosen.queries + made,
        shared_queries=chosen.shared_queries + made,
        gradient_steps=chosen.gradient_steps + steps,
        prepared=_sum([chosen.prepared, cost.queries]),
        points=tuple(
            replace(point, step=point.step + steps, queries=point.queries + made)
            for point in chosen.points
        ),
        seconds={**chosen.seconds, NETWORK: cost.seconds},
    )


def together(parts: Sequence[Chosen]) -> Chosen:
    """Return what was chosen with several value functions as one choice.

    Args:
        parts: one per value function; each chose rows of phi.

    Returns:
        The rows of all parts, one after the other. A noted number becomes the list of
        those of the parts; of lists, which figures read, the first stays.

    Raises:
        ConfigError: if the parts did not cost the same at the same points on the way.
    """
    first, costs = parts[0], {_costs(part) for part in parts}
    if len(costs) > 1:
        raise ConfigError(
            "value functions of one run must cost the same queries and steps, got "
            + " and ".join(f"{queries} and {steps}" for queries, steps, *_ in costs)
        )
    points = zip(*(part.points for part in parts), strict=True)
    return replace(
        first,
        choice=_rows(part.choice for part in parts),
        evaluations=_sum(part.evaluations for part in parts),
        prepared=_sum(part.prepared for part in parts),
        points=tuple(_point(same) for same in points),
        notes={
            name: note if isinstance(note, list) else [p.notes[name] for p in parts]
            for name, note in first.notes.items()
        },
        seconds=_sum(part.seconds for part in parts),
        shares=len(parts),
    )


def _costs(chosen: Chosen) -> tuple[Any, ...]:
    points = tuple((point.step, point.queries) for point in chosen.points)
    return chosen.queries, chosen.gradient_steps, chosen.shared_queries, points


def _rows(choices: Iterable[Choice]) -> Adapted:
    return Adapted(torch.cat([c.phi for c in choices if isinstance(c, Adapted)]))


def _point(same: Sequence[Point]) -> Point:
    seen = [point.observe for point in same if point.observe is not None]
    observe = tuple(value for values in seen for value in values)
    choice = _rows(point.choice for point in same)
    return replace(same[0], observe=observe or None, choice=choice)


def _sum(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


class JudgedSplit:
    """A split of a pipeline, for judging.

    Args:
        pipeline: gives splits, adapter and network.
        name: `train`, `observe` or `test`.
    """

    def __init__(self, pipeline: Any, name: str) -> None:
        self._pipeline, self._name = pipeline, name

    @property
    def examples(self) -> Examples:
        """The examples as the network takes them."""
        found: Examples = self._pipeline.splits.parts[self._name]
        return found

    @cached_property
    def encoded(self) -> Encoded:
        """The examples as the adapter encodes them."""
        found: Encoded = self._pipeline.encode(self._name, self.examples)
        return found

    @property
    def judge(self) -> Judge:
        """What evaluates phi on the split."""
        return Judge(self._pipeline.adapter, self.encoded)

    @cached_property
    def outputs(self) -> Outputs:
        """Class outputs of the untouched network."""
        outputs = self.judge.outputs(torch.zeros(1, self._pipeline.adapter.size))
        row = each(lambda part: part[0], outputs)
        found: Outputs = self._pipeline.class_outputs(row)
        return found

    def evaluate(
        self, choices: Sequence[Choice], metrics: Mapping[str, Metric]
    ) -> list[Values]:
        """Return all metrics of every choice."""
        adapted = [choice.phi for choice in choices if isinstance(choice, Adapted)]
        judged = iter(self._of_phi(adapted, metrics))
        return [
            next(judged)
            if isinstance(choice, Adapted)
            else self._of_outputs(choice, metrics)
            for choice in choices
        ]

    def _of_phi(
        self, rows: Sequence[Tensor], metrics: Mapping[str, Metric]
    ) -> list[Values]:
        if not rows:
            return []
        found = self.judge.evaluate(torch.cat(list(rows)), metrics)
        sizes = [len(phi) for phi in rows]
        parts = {name: values.split(sizes) for name, values in found.items()}
        return [
            {name: part[place] for name, part in parts.items()}
            for place in range(len(rows))
        ]

    def _of_outputs(
        self, choice: Shifted | Trained, metrics: Mapping[str, Metric]
    ) -> Values:
        if isinstance(choice, Shifted):
            outputs = choice.shift(self.outputs)
        else:
            at_once = self._pipeline.examples_at_once
            starts = range(0, len(self.examples), at_once)
            parts = (self.examples.batch(slice(at, at + at_once)) for at in starts)
            outputs = joined([choice.predict(part) for part in parts], 0)
        one_row = each(lambda part: part[None], outputs)
        targets, columns = self.examples.targets, columns_of(self.examples)
        return {
            name: metric.values(one_row, columned(targets, columns, metric.columns))
            for name, metric in metrics.items()
        }

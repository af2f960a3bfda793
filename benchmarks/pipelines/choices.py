"""What an arm can choose, to be judged by the pipeline it was chosen on."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from metricopt.outputs import Outputs


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
        predict: returns the outputs of inputs [n, ...]: [n, C], or a tuple of tensors
            [n, ...] where the network returns one.
    """

    predict: Callable[[Tensor], Outputs]
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


Choice = Adapted | Trained | Shifted


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

    @property
    def reported(self) -> int:
        """All metric queries by the arm's own account: of every row, and shared."""
        own = self.queries - self.shared_queries
        return self.choice.rows * own + self.shared_queries

    @property
    def queried(self) -> dict[str, int]:
        """All metric queries that were counted, by what they were made on."""
        total = Counter(self.evaluations)
        total.update(self.prepared)
        return dict(total)

"""Episodes: few-shot tasks of one shape, stacked."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError, described
from metricopt.fewshot.examples import Examples


@dataclass(frozen=True, eq=False)
class Episodes:
    """B episodes of one shape, stacked; S and Q are all examples of an episode.

    Attributes:
        support_inputs: what a learner adapts to, float32 [B, S, ...].
        support_targets: classes, int64 in [0, ways), [B, S]; or numbers [B, S, 1].
        query_inputs: what an adapted learner is judged on, float32 [B, Q, ...].
        query_targets: the same as of the support, [B, Q] or [B, Q, 1].
    """

    support_inputs: Tensor
    support_targets: Tensor
    query_inputs: Tensor
    query_targets: Tensor

    def __len__(self) -> int:
        return len(self.support_inputs)

    @property
    def support(self) -> Examples:
        """Inputs and targets of the support of all episodes."""
        return self.support_inputs, self.support_targets

    @property
    def query(self) -> Examples:
        """Inputs and targets of the query of all episodes."""
        return self.query_inputs, self.query_targets

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the four tensors, in their order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def one_by_one(self) -> Iterator[tuple[Examples, Examples]]:
        """Yield support and query of every episode, without the dimension B."""
        supports, queries = (
            zip(*self.support, strict=True),
            zip(*self.query, strict=True),
        )
        yield from zip(supports, queries, strict=True)

    @classmethod
    def stacked(cls, tasks: Iterable[Sequence[Tensor]]) -> "Episodes":
        """Return tasks of one shape as episodes.

        Args:
            tasks: support inputs and targets, query inputs and targets of each: [S,
                ...], [S, ...], [Q, ...], [Q, ...].

        Raises:
            ConfigError: if there is no task, or one is not four tensors.
            ShapeError: if two tasks differ in a shape.
        """
        given = [tuple(task) for task in tasks]
        names = [field.name for field in fields(cls)]
        for task in given or [()]:
            if len(task) != 4 or not all(isinstance(each, Tensor) for each in task):
                raise ConfigError(
                    f"a task must be four tensors, {', '.join(names)}; got "
                    f"{described(task) if given else 'no task'}"
                )
        for name, parts in zip(names, zip(*given, strict=True), strict=True):
            shapes = {tuple(part.shape): None for part in parts}
            if len(shapes) > 1:
                first, other, *_ = map(list, shapes)
                raise ShapeError(
                    f"{name} of tasks adapted to together must have one shape, got "
                    f"{first} and {other}"
                )
        return cls(*map(torch.stack, zip(*given, strict=True)))

    def to(self, device: torch.device | str) -> "Episodes":
        """Return the episodes on a device."""
        return Episodes(*(part.to(device) for part in self.tensors()))


EpisodesOf = Callable[[Sequence[int]], Episodes]
"""From numbers to their episodes: the same number is always the same episode."""

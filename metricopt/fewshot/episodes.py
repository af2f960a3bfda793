"""Episodes: few-shot tasks of one shape, stacked."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

Examples = tuple[Tensor, Tensor]
"""Inputs and targets."""


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

    def to(self, device: torch.device | str) -> "Episodes":
        """Return the episodes on a device."""
        return Episodes(*(part.to(device) for part in self.tensors()))


EpisodesOf = Callable[[Sequence[int]], Episodes]
"""From numbers to their episodes: the same number is always the same episode."""

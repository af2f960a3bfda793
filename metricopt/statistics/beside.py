"""Statistics with columns: of every group of examples, and of weighted examples.

Any kind of statistics can be taken of a part of the examples, or of weighted ones. So a
metric of groups is a function of the statistics of each group, and of how far these are
apart; a metric with a weight or an amount per example, of statistics that weigh so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from metricopt.reading.columns import Columns, groups_of
from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import Groups, Statistics

MOST_SORTED = 16
"""Most numbers whose gaps between groups are sorted."""
TOGETHER = "plain and weighted"
SMALL = 1e-9


def with_columns(
    kinds: Sequence[Statistics], columns: Columns
) -> tuple[Statistics, ...]:
    """Return kinds of statistics, and what columns make of them.

    A column of few values names groups, as `groups_of` says, and one of other numbers,
    or of any numbers with a point, weights examples.

    Args:
        kinds: statistics of outputs and targets alone.
        columns: those that the metric takes, each of N examples.
    """
    counted = [kind for kind in kinds if not kind.compares]
    weights = _weights(columns)
    if weights:
        kinds = [Weighted(kind, weights) if kind in counted else kind for kind in kinds]
    grouped = [
        ByGroup(kind, name, places, len(names))
        for name, (places, names) in groups_of(columns).items()
        for kind in counted
    ]
    return *kinds, *grouped


class _Made(Statistics):
    """Statistics that another kind makes of the same outputs and targets."""

    kind: Statistics

    @property
    def reads(self) -> Reads:
        """What outputs are, to the other kind."""
        return self.kind.reads

    def fitted(self, targets: Tensor) -> Self:
        """Return the statistics for all examples of a split."""
        return replace(self, kind=self.kind.fitted(targets))  # type: ignore[type-var]

    def strata(self, targets: Tensor) -> Tensor:
        """Return what parts of a split are made alike in, as the other kind wants."""
        return self.kind.strata(targets)

    def views(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return what the other kind reads of every example."""
        return self.kind.views(outputs, targets)


@dataclass(frozen=True, eq=False)
class Weighted(_Made):
    """A kind of statistics, and the same with the examples weighted in further ways.

    A metric is often linear in both together: what is earned, say, and what each
    letter costs.

    Attributes:
        kind: the kind.
        weights: by name, >= 0, shape [N] each.
    """

    kind: Statistics
    weights: Mapping[str, Tensor]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the kind."""
        return self.kind.name

    @property
    def near(self) -> str:  # type: ignore[override]
        """The group of what is near in every way of weighting."""
        return TOGETHER

    def at(self, places: Tensor) -> Self:
        """Return the statistics of the examples at places [n]."""
        weights = {name: part[places] for name, part in self.weights.items()}
        return replace(self, kind=self.kind.at(places), weights=weights)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the kind, and those of every way of weighting."""
        return self._joined(
            weights,
            lambda own: self.kind.groups(outputs, targets, own, smooth=smooth),
        )

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the same of views by a network for each fold."""
        return self._joined(
            weights, lambda own: self.kind.pooled(views, targets, own, folds)
        )

    def _joined(
        self, weights: Tensor | None, groups: Callable[[Tensor | None], Groups]
    ) -> Groups:
        found = groups(weights)
        nears = [found[self.kind.near]]
        for name, part in self.weights.items():
            own = part[None] if weights is None else weights * part.to(weights)
            weighted = groups(own)
            nears.append(weighted[self.kind.near])
            found |= {f"{each} by {name}": weighted[each] for each in weighted}
        return found | {TOGETHER: torch.cat(nears, 1)}


@dataclass(frozen=True, eq=False)
class ByGroup(_Made):
    """The statistics of every group of examples, and how far they are apart.

    Attributes:
        kind: the kind.
        column: name of the column that names the groups.
        places: place of the group of every example, in [0, count), shape [N].
        count: number of groups G.
    """

    kind: Statistics
    column: str
    places: Tensor
    count: int

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of the kind and of the column."""
        return f"{self.kind.name} by {self.column!r}"

    @property
    def near(self) -> str:  # type: ignore[override]
        """The group of the kind."""
        return self.kind.near

    def at(self, places: Tensor) -> Self:
        """Return the statistics of the examples at places [n]."""
        own = self.places[places]
        return replace(self, kind=self.kind.at(places), places=own)

    def divided(self, strata: Tensor) -> Tensor:
        """Return strata [N] divided by group."""
        found: Tensor = strata.unique(return_inverse=True)[1]
        return found * self.count + self.places.to(found)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of the kind, of each group of examples, compared."""
        return compared(
            self.kind.at(own).groups(
                outputs[:, at], targets[at], _of(weights, at), smooth=smooth
            )
            if len(own)
            else None
            for own, at in self._members(outputs)
        )

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the same of views by a network for each fold."""
        return compared(
            self.kind.at(own).pooled(
                views[:, at], targets[at], _of(weights, at), folds[own]
            )
            if len(own)
            else None
            for own, at in self._members(views)
        )

    def _members(self, outputs: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the places of each group's examples, here and where outputs are."""
        own = [(self.places == each).nonzero().flatten() for each in range(self.count)]
        return [(places, places.to(outputs.device)) for places in own]


def compared(found: Iterable[Groups | None]) -> Groups:
    """Return the statistics of G groups of examples beside what compares them.

    That is, for each number of a group [B, q]: the least and the greatest, the gap
    between both, and their ratio. A group without examples, None, counts as all zeros.
    """
    whole = list(found)
    some = next(each for each in whole if each is not None)
    nothing = {name: torch.zeros_like(values) for name, values in some.items()}
    groups = {}
    for name in some:
        each = torch.stack([(part or nothing)[name] for part in whole], -1)
        least, most = each.amin(-1), each.amax(-1)
        gaps = most - least
        groups[name] = each.flatten(1)
        groups[f"extremes of {name}"] = torch.cat([least, most], 1)
        groups[f"gaps of {name}"] = gaps
        groups[f"ratios of {name}"] = least / most.clamp_min(SMALL)
        if 1 < gaps.shape[1] <= MOST_SORTED:
            groups[f"sorted gaps of {name}"] = gaps.sort(1).values
    return groups


def _of(weights: Tensor | None, places: Tensor) -> Tensor | None:
    return None if weights is None else weights[:, places.to(weights.device)]


def _weights(columns: Columns) -> dict[str, Tensor]:
    """Return weights of mean 1 by name; those below 0 are weights of their own."""
    grouped = groups_of(columns)
    found: dict[str, Tensor] = {}
    for name, column in columns.items():
        if not isinstance(column, Tensor) or column.ndim != 1:
            continue
        if column.dtype == torch.bool or column.is_complex():
            continue
        if name in grouped and not column.is_floating_point():
            continue
        values = column.cpu().double()
        if not values.isfinite().all() or values.min() == values.max():
            continue
        parts = {repr(name): values.clamp_min(0)}
        parts[f"{name!r} below 0"] = (-values).clamp_min(0)
        found |= {
            each: part / part.mean() for each, part in parts.items() if part.any()
        }
    return found

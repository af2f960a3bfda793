"""Several kinds of statistics side by side, for a metric of unknown family."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.reading.outputs import Reads
from metricopt.statistics.contract import Family, Groups, Statistics

NEAR = "near"


@dataclass(frozen=True)
class SeveralStatistics(Statistics):
    """The groups of several kinds, each with the name of its kind before its own.

    A metric may be a function of one kind, or of all.

    Attributes:
        kinds: at least one, with different names, which all read the same.
        left_out: groups that are left out, with the names of their kinds.
    """

    kinds: tuple[Statistics, ...]
    left_out: tuple[str, ...] = ()
    name = "several"
    near = NEAR

    @property
    def reads(self) -> Reads:
        """What outputs are, to all of its kinds."""
        return self.kinds[0].reads

    def fitted(self, targets: Tensor) -> Self:
        """Return all kinds, for all examples of a split."""
        kinds = tuple(kind.fitted(targets) for kind in self.kinds)
        return replace(self, kinds=kinds)

    def sizes(self, targets: Tensor) -> dict[str, int]:
        """Return how much a split holds, to all of its kinds."""
        return self.kinds[0].sizes(targets)

    def draw(self, targets: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Return places of about `count` examples, as its kinds want them."""
        return self.kinds[0].draw(targets, count, generator)

    def views(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return what is read of every example.

        Raises:
            ConfigError: if there are several kinds that compare examples, each of
                which reads something else.
        """
        if self.compares and len(self.kinds) > 1:
            raise ConfigError(
                "expected one kind of statistics that compares examples, got "
                f"{', '.join(self.names())}"
            )
        return self.kinds[0].views(outputs, targets)

    def names(self) -> tuple[str, ...]:
        """Return the names of its kinds."""
        return tuple(kind.name for kind in self.kinds)

    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return the groups of all kinds."""
        return self._joined(
            kind.groups(outputs, targets, weights, smooth=smooth) for kind in self.kinds
        )

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the groups of all kinds, of views by a network for each fold."""
        return self._joined(
            kind.pooled(views, targets, weights, folds) for kind in self.kinds
        )

    def families(self, groups: Iterable[str]) -> tuple[Family, ...]:
        """Return a family for each kind, and one of all groups together."""
        names = sorted(set(groups) - {NEAR})
        found = [
            Family(
                tuple(name for name in names if name.startswith(_prefix(kind))),
                _prefix(kind) + kind.near,
            )
            for kind in self.kinds
        ]
        if len(found) > 1:
            found.append(Family(tuple(names), NEAR, alone=False))
        return tuple(found)

    def only(self, names: Collection[str]) -> Self:
        """Return the kinds of these names alone."""
        kept = tuple(kind for kind in self.kinds if kind.name in names)
        return replace(self, kinds=kept)

    def without(self, groups: Collection[str]) -> Self:
        """Return the kinds without some groups, given with the names of their kinds."""
        return replace(self, left_out=tuple(groups))

    def of_these(self, groups: Groups) -> Groups:
        """Return the groups of these kinds, of groups of more kinds."""
        found = {
            name: values
            for name, values in groups.items()
            if any(name.startswith(_prefix(kind)) for kind in self.kinds)
        }
        return found | {NEAR: self._near(found)}

    def _joined(self, found: Iterable[Groups]) -> Groups:
        joined = {
            _prefix(kind) + name: values
            for kind, groups in zip(self.kinds, found, strict=True)
            for name, values in groups.items()
            if _prefix(kind) + name not in self.left_out
        }
        return joined | {NEAR: self._near(joined)}

    def _near(self, groups: Groups) -> Tensor:
        return torch.cat([groups[_prefix(k) + k.near] for k in self.kinds], 1)


def _prefix(kind: Statistics) -> str:
    return f"{kind.name}: "

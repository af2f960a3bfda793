"""The contract of statistics: numbers of outputs and labels a metric may depend on.

They cost no query: outputs and labels of the observe split are known for every phi. A
value function learned on them needs far fewer queries than one learned on phi. Several
kinds stand side by side for a metric of unknown family.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.reading.outputs import Reads
from metricopt.registry import Registry
from metricopt.statistics.strata import strata_of_labels

Groups = dict[str, Tensor]
"""Statistics [B, q] of B rows by the name of their group."""


@dataclass(frozen=True)
class Family:
    """Groups that explain a metric together.

    Attributes:
        groups: in each of which alone, or in all of which, the metric may be linear.
        near: the group whose distances say how alike two rows are.
        alone: whether the metric may be linear in one group alone.
        kind: name of the kind of statistics; "" for several kinds together.
    """

    groups: tuple[str, ...]
    near: str
    alone: bool = True
    kind: str = ""


class Statistics(ABC):
    """Numbers of outputs and targets, in groups that a metric may be linear in.

    Attributes:
        name: name of the kind.
        near: the group whose distances say how alike two rows are; rates in [0, 1].
    """

    name: ClassVar[str]
    near: ClassVar[str]

    @property
    def scores(self) -> tuple[str, ...]:
        """Return the names of groups of one number that a metric may be linear in.

        Only metrics that are bounded are explained by them. A bound is judged on
        samples with other shares of labels than any query had, and there the shares of
        many levels are no substitute for the mean.
        """
        return ()

    @property
    def reads(self) -> Reads:
        """What outputs are: scores of classes, unless a kind says otherwise."""
        return "scores"

    @property
    def compares(self) -> bool:
        """Whether outputs are embeddings, whose examples are compared with each other.

        Such an example says nothing by itself, and those of a class go together.
        """
        return self.reads == "embeddings"

    def suits(self, outputs: Tensor, targets: Tensor) -> bool:
        """Return whether there are such statistics of outputs [1, N, C], labels [N]."""
        return True

    def fitted(self, targets: Tensor) -> Self:
        """Return the statistics for all examples of a split, with targets [N].

        Smooth statistics of some of them then estimate those of all.
        """
        return self

    def sizes(self, targets: Tensor) -> dict[str, int]:
        """Return how much a split with targets [N] holds, by name.

        Counts: units judged singly, then groups that stay together, if there are any,
        such as the examples of a class where examples are compared.
        """
        examples = {"examples": len(targets)}
        if not self.compares:
            return examples
        return examples | {"classes": len(targets.unique())}

    def draw(self, targets: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Return places of about `count` examples that stand for all in `smooth`.

        Labels of all examples, [N], are on the CPU.
        """
        return torch.randperm(len(targets), generator=generator)[:count]

    def strata(self, targets: Tensor) -> Tensor:
        """Return what parts of a split with targets [N, ...] are made alike in, [N].

        Equal numbers are one stratum, and strata that are alike follow each other.
        """
        return strata_of_labels(targets)

    def divided(self, strata: Tensor) -> Tensor:
        """Return strata [N] divided by what a kind knows of the examples itself."""
        return strata

    def at(self, places: Tensor) -> Self:
        """Return the statistics of the examples at places [n], which are cut alike."""
        return self

    def views(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return what `pooled` reads of each example, [B, N, V]; by default outputs."""
        return outputs

    def names(self) -> tuple[str, ...]:
        """Return the names of the kinds it is made of: its own alone."""
        return (self.name,)

    def only(self, names: Collection[str]) -> "Statistics":
        """Return the kinds of these names alone."""
        return self

    def without(self, groups: Collection[str]) -> "Statistics":
        """Return the statistics without some groups, for ablations."""
        raise ConfigError(f"no group of the statistics {self.name} can be left out")

    def read_in(self, groups: Collection[str]) -> "Statistics":
        """Return the statistics of which these groups alone are read, and `near`.

        Others need not be computed.
        """
        return self

    def of_these(self, groups: Groups) -> Groups:
        """Return the groups of these kinds, of groups of more kinds."""
        return groups

    def families(self, groups: Iterable[str]) -> tuple[Family, ...]:
        """Return the families of groups; metrics are a function of one of them."""
        names = tuple(sorted(set(groups) - {*self.scores}))
        return (Family(names, self.near, kind=self.name),)

    def bounded_families(self, groups: Iterable[str]) -> tuple[Family, ...]:
        """Return the families of a metric that is bounded: every score alone, too."""
        return (*self.families(groups), *self.families_of_scores())

    def families_of_scores(self) -> tuple[Family, ...]:
        """Return a family for every score."""
        return tuple(Family((name,), self.near, kind=self.name) for name in self.scores)

    def exact(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None = None
    ) -> Groups:
        """Return the statistics as a metric sees them, of decisions say.

        Args:
            outputs: network outputs, shape [B, N, C].
            targets: targets of the N examples, shape [N].
            weights: weights of the examples in each row, >= 0, shape [B, N]; zeros
                leave a fold out, counts make a bootstrap sample. None weighs all alike.

        Returns:
            Statistics by group, float64, each [B, q].
        """
        return self.groups(outputs, targets, weights, smooth=False)

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the exact statistics of views pooled from a network for each fold.

        By default those of any outputs, which is right where every example counts by
        itself. Scores of different networks are not comparable: a kind that compares
        the scores of examples has to compare them within a fold, or in its views.

        Args:
            views: each by the network of the fold of the example, shape [B, N, V].
            targets: targets of the N examples, shape [N].
            weights: see `exact`.
            folds: the fold of every example, shape [N].
        """
        return self.exact(views, targets, weights)

    def smooth(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None = None
    ) -> Groups:
        """Return estimates of `exact` that are differentiable in the outputs."""
        return self.groups(outputs, targets, weights, smooth=True)

    @abstractmethod
    def groups(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None, *, smooth: bool
    ) -> Groups:
        """Return what `exact` returns, or `smooth`."""


@dataclass(frozen=True, kw_only=True)
class PartlyRead(Statistics):
    """Statistics that compute no more than what is read of them.

    Attributes:
        read: groups that are computed; None for all.
    """

    read: frozenset[str] | None = None

    def read_in(self, groups: Collection[str]) -> Self:
        """Return the statistics that compute these groups alone, and `near`."""
        return replace(self, read=frozenset({*groups, self.near}))

    def is_read(self, *groups: str) -> bool:
        """Return whether one of these groups is read."""
        return self.read is None or not self.read.isdisjoint(groups)


def anchored(here: Groups, there: Groups, exact: Groups) -> Groups:
    """Return smooth statistics of some examples `here`, made exact at an anchor.

    `there` are the smooth ones at the anchor, `exact` the exact ones of all examples.
    """
    return {name: exact[name] + here[name] - there[name] for name in here}


STATISTICS: Registry[type[Statistics]] = Registry(
    "kind of statistics", "metricopt.statistics", base=Statistics
)
"""All kinds that a task of class outputs offers."""


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

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores of all kinds."""
        return tuple(
            _prefix(kind) + name for kind in self.kinds for name in kind.scores
        )

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

    def strata(self, targets: Tensor) -> Tensor:
        """Return what parts of a split are made alike in, as its kinds want it."""
        found = self.kinds[0].strata(targets)
        for kind in self.kinds:
            found = kind.divided(found)
        return found

    def at(self, places: Tensor) -> Self:
        """Return all kinds, of the examples at places [n]."""
        return replace(self, kinds=tuple(kind.at(places) for kind in self.kinds))

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
        return self.joined(
            kind.groups(outputs, targets, weights, smooth=smooth) for kind in self.kinds
        )

    def pooled(
        self, views: Tensor, targets: Tensor, weights: Tensor | None, folds: Tensor
    ) -> Groups:
        """Return the groups of all kinds, of views by a network for each fold."""
        return self.joined(
            kind.pooled(views, targets, weights, folds) for kind in self.kinds
        )

    def families(self, groups: Iterable[str]) -> tuple[Family, ...]:
        """Return a family for each kind, and one of all groups together."""
        names = sorted(set(groups) - {NEAR, *self.scores})
        found = [
            Family(
                tuple(name for name in names if name.startswith(_prefix(kind))),
                _prefix(kind) + kind.near,
                kind=kind.name,
            )
            for kind in self.kinds
        ]
        if len(found) > 1:
            found.append(Family(tuple(names), NEAR, alone=False))
        return tuple(found)

    def families_of_scores(self) -> tuple[Family, ...]:
        """Return a family for every score of every kind."""
        return tuple(
            Family((_prefix(kind) + name,), _prefix(kind) + kind.near, kind=kind.name)
            for kind in self.kinds
            for name in kind.scores
        )

    def only(self, names: Collection[str]) -> Self:
        """Return the kinds of these names alone."""
        kept = tuple(kind for kind in self.kinds if kind.name in names)
        return replace(self, kinds=kept)

    def without(self, groups: Collection[str]) -> Self:
        """Return the kinds without some groups, given with the names of their kinds."""
        return replace(self, left_out=tuple(groups))

    def read_in(self, groups: Collection[str]) -> Self:
        """Return the kinds, each of which knows what is read of it."""
        kinds = tuple(
            kind.read_in([name.removeprefix(_prefix(kind)) for name in groups])
            for kind in self.kinds
        )
        return replace(self, kinds=kinds)

    def of_these(self, groups: Groups) -> Groups:
        """Return the groups of these kinds, of groups of more kinds."""
        found = {
            name: values
            for name, values in groups.items()
            if any(name.startswith(_prefix(kind)) for kind in self.kinds)
        }
        return found | {NEAR: self._near(found)}

    def joined(self, found: Iterable[Groups]) -> Groups:
        """Return the groups of all kinds, given in their order, by full names."""
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

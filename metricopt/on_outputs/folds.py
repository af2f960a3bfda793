"""Folds and bootstrap samples of the observe split, and a check of a gain on folds.

Where examples are compared with each other, those of a class go together: the gain is
to hold on classes that were never seen. So do those of a cluster, such as the images of
a patient: it is to hold on patients that were never seen.
"""

import math
from dataclasses import dataclass
from itertools import chain, repeat

import torch
from torch import Tensor

from metricopt.errors import DataError, MetricError
from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.tasks.task import Task

FEWEST, FEWEST_TOGETHER = 50, 10
"""Fewest units of an observe split that is cross-fitted: of those judged one by one
(examples, or objects of images), and of those that stay together (classes that are
compared, or images)."""
DRAWN_AT_ONCE = 20
"""Samples of the bootstrap that are drawn together."""


def lacking(statistics: ObservedStatistics) -> str:
    """Return what an observe split lacks to be cross-fitted; empty if nothing."""
    sizes = statistics.kind.sizes(statistics.targets)
    if statistics.clusters is not None:
        sizes |= {"clusters": len(statistics.clusters.unique())}
    least = chain([FEWEST], repeat(FEWEST_TOGETHER))
    for (what, count), needed in zip(sizes.items(), least, strict=False):
        if count < needed:
            return (
                f"An observe split of {count} {what} is too small to cross-fit, which "
                f"needs {needed}."
            )
    return ""


def parts_of(task: Task, count: int, generator: torch.Generator) -> list[Tensor]:
    """Return places of the examples of `count` random parts of the observe split.

    They are alike in labels where parts drawn of all examples would lack one, or where
    clusters stay whole. DataError is raised if there are fewer clusters than parts.
    """
    statistics, clusters = task.statistics, task.clusters
    if clusters is not None and (found := len(clusters.unique())) < count:
        raise DataError(f"there are {found} clusters, for {count} parts")
    if clusters is None and not task.compares:
        order = torch.randperm(task.examples, generator=generator)
        parts = list(order.tensor_split(count))
        if statistics is None:
            return parts
        strata = statistics.kind.strata(statistics.targets)
        if all(len(strata[part].unique()) == len(strata.unique()) for part in parts):
            return parts
    if statistics is None:
        alike = torch.zeros(task.examples, dtype=torch.long)
        folds = stratified_folds(alike, count, generator, clusters)
    else:
        folds = folds_of(statistics, count, generator)
    return [(folds == fold).nonzero().flatten() for fold in range(count)]


def folds_of(
    statistics: ObservedStatistics, folds: int, generator: torch.Generator
) -> Tensor:
    """Return a fold in [0, folds) for every example, shape [N]."""
    strata = statistics.kind.strata(statistics.targets)
    if not statistics.compares:
        return stratified_folds(strata, folds, generator, statistics.clusters)
    kinds, place = strata.unique(return_inverse=True)
    order = torch.randperm(len(kinds), generator=generator)
    return (order % folds)[place]


def stratified_folds(
    targets: Tensor,
    folds: int,
    generator: torch.Generator,
    clusters: Tensor | None = None,
) -> Tensor:
    """Return a fold in [0, folds) for every label [N], alike in labels and size.

    Examples of a cluster [N] have the same fold, so sizes may differ. Folds are then
    alike in how many clusters they have with each label; the rarest one of a cluster
    counts.
    """
    if clusters is not None:
        kinds, place = clusters.unique(return_inverse=True)
        rarest = _rarest(targets, place, len(kinds))
        return stratified_folds(rarest, folds, generator)[place]
    found = torch.empty(len(targets), dtype=torch.long)
    found[_by_label(targets, generator)] = torch.arange(len(targets)) % folds
    return found


def stratified_sample(targets: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Return the places, in order, of `size` of the labels [N], alike in labels."""
    even = torch.arange(size) * len(targets) // size
    return _by_label(targets, generator)[even].sort().values


def _by_label(targets: Tensor, generator: torch.Generator) -> Tensor:
    """Return the places of all labels [N], label by label, in random order in each."""
    shuffled = torch.randperm(len(targets), generator=generator)
    return shuffled[targets[shuffled].argsort(stable=True)]


def _rarest(targets: Tensor, place: Tensor, clusters: int) -> Tensor:
    """Return the rarest label of every cluster, by how rare it is, shape [clusters]."""
    _, label, counts = targets.unique(return_inverse=True, return_counts=True)
    rank = counts.argsort(stable=True).argsort()
    every = torch.full((clusters,), len(counts))
    return every.scatter_reduce(0, place, rank[label], "amin")


def bootstrap(
    statistics: ObservedStatistics, samples: int, generator: torch.Generator
) -> Tensor:
    """Return how often every example is in the split itself, then in every sample.

    Examples are drawn, or classes or clusters with all their examples. Shape [1 +
    samples, N], int16: there may be many examples.
    """
    units = statistics.targets if statistics.compares else statistics.clusters
    if units is None:
        return _counts(samples, len(statistics), generator)
    kinds, place = units.unique(return_inverse=True)
    return _counts(samples, len(kinds), generator)[:, place]


def _counts(samples: int, units: int, generator: torch.Generator) -> Tensor:
    """Return counts [1 + S, units]: a row of ones, then one for each sample drawn."""
    counts = torch.ones(1 + samples, units, dtype=torch.int16)
    for block in counts[1:].split(DRAWN_AT_ONCE):
        # The generator gives the same numbers, drawn at once or in blocks.
        drawn = torch.randint(units, block.shape, generator=generator)
        block.zero_().scatter_add_(1, drawn, torch.ones_like(block))
    return counts


FOLDS = 5
QUERIES = 2 * FOLDS
"""What the check of one phi costs: phi and the untouched network on every part."""
LEVELS = {2: 5.4, 3: 2.7, 4: 2.2, FOLDS: 2.0}
"""Standard errors by which a gain on so many parts that chose phi has to exceed 0.

With each, chance alone passes as often: these are quantiles of Student's distribution,
6 % above them.
"""
FEWEST_QUERIES = 2 * min(LEVELS)
"""The least that a check costs, on two parts."""


@dataclass(frozen=True)
class FoldCheck:
    """The gain of a phi over the untouched network on parts of the observe split.

    Attributes:
        gain: mean decrease of the cost.
        error: standard error of that mean.
        parts: number of parts.
        how: what was checked, the beginning of a sentence.
    """

    gain: float
    error: float
    parts: int
    how: str

    @property
    def is_shown(self) -> bool:
        """Whether the gain exceeds 0 by more than its error explains; see `LEVELS`."""
        return self.gain > LEVELS[self.parts] * self.error


def check_on_folds(
    task: Task, phi: Tensor, generator: torch.Generator, *, queries: int = QUERIES
) -> list[FoldCheck]:
    """Query every row [R, d] and the untouched network on parts of observe.

    That is up to `QUERIES` for every row, and no more than `queries`. The parts have
    chosen phi, too: what is seen is chance, not over-fitting, so a gain has to exceed
    its error by more than one that was cross-fitted. DataError or MetricError is raised
    if the metric cannot be evaluated on a part.
    """
    count = min(FOLDS, queries // 2)
    parts = parts_of(task, count, generator)
    both = torch.cat([torch.zeros_like(phi), phi])
    costs = [task.observe_part(both, part) for part in parts]
    untouched, moved = torch.stack(costs, 1).chunk(2)
    gains = untouched - moved
    how = f"On {count} parts of the observe split"
    return [
        FoldCheck(row.mean().item(), row.std().item() / math.sqrt(count), count, how)
        for row in gains
    ]


def check(
    task: Task,
    phi: Tensor,
    untouched: Tensor,
    generator: torch.Generator,
    queries: int,
) -> list[FoldCheck]:
    """Check every row [R, d] on parts, or without where a metric is undefined on them.

    A metric that needs the whole split is queried on it, with phi in the place of phi =
    0 on the examples of one part after another. What that gains adds up to about what
    phi gains on all. The untouched network has the costs `untouched` [R] there.

    Raises:
        DataError: if it cannot be checked so either, as where examples are compared
            with each other.
        MetricError: the same.
    """
    before, rows = task.queries, len(phi)
    try:
        return check_on_folds(task, phi, generator, queries=queries)
    except (DataError, MetricError) as error:
        left = queries - 2 - (task.queries - before) // rows
        if task.compares or left < min(LEVELS):
            raise
        count, reason = min(FOLDS, left), str(error)
    parts = parts_of(task, count, generator)
    gains = [untouched - task.observe_within(phi, part) for part in parts]
    how = (
        f"The metric cannot be evaluated on a part of the observe split ({reason}), so "
        f"phi was used for one of {count} parts after another: in all,"
    )
    return [
        FoldCheck(row.sum().item(), row.std().item() * math.sqrt(count), count, how)
        for row in torch.stack(gains, 1)
    ]

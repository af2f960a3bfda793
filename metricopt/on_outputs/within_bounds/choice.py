"""The choice within bounds: the best objective of what is likely to meet them all.

phi is fitted anew without each fold and judged on it, as without bounds. What is just
within a bound on the observe split misses it on every second other split, so phi is
fitted to tighter bounds: the margin grows until they are met with enough probability.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.methods.bounds import Front
from metricopt.metrics.base import ROUNDING
from metricopt.metrics.confusion import predict_labels
from metricopt.metrics.constrained import Bounds, constrained_cost
from metricopt.on_outputs.coordinates import Reach, reaches
from metricopt.on_outputs.cross_fitting import (
    SAMPLES_AT_ONCE,
    CrossFitting,
    followed,
    simplest,
)
from metricopt.on_outputs.folds import bootstrap, folds_of
from metricopt.on_outputs.search import OutputsSearch
from metricopt.on_outputs.statistics_value import Explained
from metricopt.on_outputs.within_bounds.front import (
    SMALL,
    is_best,
    spread_out,
    towards,
)
from metricopt.on_outputs.within_bounds.sweeps import Aim, Sweeps, is_swept
from metricopt.on_outputs.within_bounds.value import ConstrainedValueFunction
from metricopt.reading.outputs import are_labels
from metricopt.tasks.observed_statistics import ObservedStatistics

MARGINS = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Margins of the bounds, in standard errors of their metrics, in turn."""
KEPT = 30
"""Best offsets for every margin that are fitted without each fold, too."""
FLIPPED = 5
"""Classes, those decided least, in which a further error is thought of."""
WITHOUT_OFFSETS = (0.0, 0.2, 0.5)
"""Margins where no offsets are swept, in spreads of what was observed."""


@dataclass(frozen=True)
class Held:
    """A phi, and what is predicted of it on examples that did not choose it.

    Attributes:
        phi: fitted on all folds, shape [d].
        moved: which part of phi was fitted, and from where.
        each: predicted on all examples, shape [1 + M]; see `Task.observe_each`.
        samples: predicted on held-out examples, of all and of S samples of the
            bootstrap, shape [1 + S, 1 + M].
        errors: standard error of every excess, shape [M].
        met: probability that each bound is met on other data, shape [M].
        all_met: probability that all are.
    """

    phi: Tensor
    moved: str
    each: Tensor
    samples: Tensor
    errors: Tensor
    met: Tensor
    all_met: float

    @property
    def objective(self) -> Tensor:
        """Costs on all examples and in the samples; not below what was seen, [1 + S].

        Folds that err in different ways look better together than each of them is.
        """
        return self.samples[:, 0] + (self.each[0] - self.samples[0, 0]).clamp_min(0)


@dataclass(frozen=True)
class Chosen:
    """What was chosen within the bounds.

    Attributes:
        best: the best objective of what meets them with enough probability, or else
            what most probably meets them.
        untouched: phi = 0.
        front: what else can be had.
    """

    best: Held
    untouched: Held
    front: Front


class Choice:
    """What one search can choose from, on folds of its own."""

    def __init__(
        self,
        search: OutputsSearch,
        known: Explained,
        settings: CrossFitting,
        generator: torch.Generator,
        bounds: Bounds,
    ) -> None:
        assert isinstance(known.value, ConstrainedValueFunction)
        self._search, self._known, self._value = search, known, known.value
        self._settings, self._generator, self._bounds = settings, generator, bounds
        statistics = known.statistics
        self._found = reaches(statistics, search.along.scale, search.candidates)
        self._folds = folds_of(statistics, settings.folds, generator)
        self._weights = bootstrap(statistics, settings.samples, generator)
        rows = torch.arange(settings.folds + 1)
        self._kept = (self._folds != rows[:, None]).float()
        # What the value function does not know of a bound counts against it.
        chance = torch.rand(settings.samples, 1, generator=generator).double()
        self._errors = -torch.log1p(-chance)  # how many, exponentially distributed
        self._doubt = torch.tensor(search.prediction_errors[1:], dtype=torch.float64)

    def made(self) -> Chosen:
        """Return what is chosen, and the front."""
        statistics = self._known.statistics
        nothing = torch.zeros(1, statistics.size)
        views = statistics.views(nothing)
        untouched = self._held(nothing[0], "nothing", statistics, views, views)
        offsets = self._offsets()
        if offsets is None:
            spread = self._search.each[:, 1:].std(0, correction=0)
            margins = (k * spread for k in WITHOUT_OFFSETS)
            held = [each for margin in margins for each in self._descended(margin)]
            best = self._best([untouched, *held])
            return Chosen(best, untouched, self._front_of_queried())
        sweep = _OffsetsSweep(self, offsets, untouched)
        held = [sweep.within()]
        if "adapter" in statistics.parts or not sweep.is_exhaustive:
            held += self._descended(sweep.margin * sweep.scale)
        return Chosen(self._best(held), untouched, sweep.front(self._bounds.axes))

    def _offsets(self) -> Reach | None:
        """Return output offsets alone, if there are any that can be swept."""
        if not is_swept(self._known.statistics):
            return None
        alone = next((reach for reach in self._found if reach.is_cheap), None)
        return alone or self._found[0]  # there is nothing else to move

    def _best(self, held: list[Held]) -> Held:
        """Return the simplest that is as good as the best of those within bounds."""
        enough = [each for each in held if each.all_met >= self._bounds.confidence]
        if not enough:
            return max(held, key=lambda each: each.all_met)
        return enough[simplest(torch.stack([each.objective for each in enough]))]

    def _descended(self, margin: Tensor) -> Iterator[Held]:
        """Yield what descents lead to that keep off the bounds by a margin [M]."""
        value = self._value.with_margin(margin)
        found = self._found
        if any(not reach.is_cheap for reach in found) and self._offsets() is not None:
            found = [reach for reach in found if not reach.is_cheap]
        settings, generator = self._settings, self._generator
        for each in followed(value, found, settings, self._folds, generator):
            best, statistics = each.best, each.best.reach.statistics
            seen = statistics.views(best.moved[None])
            phi = best.reach.whole(best.moved)
            yield self._held(phi, best.reach.name, statistics, each.held_out, seen)

    def _held(
        self,
        phi: Tensor,
        moved: str,
        statistics: ObservedStatistics,
        held_out: Tensor,
        seen: Tensor,
    ) -> Held:
        """Return what is predicted of views [1, N, V], held out and seen."""
        samples = self._sampled(statistics, held_out)
        own = samples if seen is held_out else self._sampled(statistics, seen)
        once = self._one_more_error(statistics, seen)
        errors = (samples[1:, 1:].var(0) + once.square()).sqrt()
        within = [self._is_within(other[:, 1:], once) for other in (samples, own)]
        each_met = torch.stack([each.mean(0) for each in within]).amin(0)
        all_met = min(each.amin(1).mean().item() for each in within)
        return Held(phi, moved, own[0], samples, errors, each_met, all_met)

    def _is_within(self, excess: Tensor, once: Tensor) -> Tensor:
        """Return whether each bound is met in every sample, [S, M].

        Where none of few examples was wrong, the bootstrap knows of no error; one more,
        with the excess `once` [M], may come at any time.
        """
        drawn = excess[1:] + self._errors * once + self._doubt
        return (drawn <= ROUNDING).double()

    def _one_more_error(self, statistics: ObservedStatistics, views: Tensor) -> Tensor:
        """Return the most that a further wrong example adds to each excess, [M].

        It is a right one with another label, of one of the classes decided least.
        """
        targets = statistics.targets
        none = torch.zeros(len(self._doubt), dtype=torch.float64)
        if statistics.kind.reads != "scores" or not are_labels(targets):
            return none
        decided, classes = predict_labels(views)[0].cpu(), max(2, views.shape[-1])
        right = decided[decided == targets]
        counts = right.bincount(minlength=classes)
        least = (counts + len(targets) * (counts == 0)).argsort()[:FLIPPED]
        before, most = self._of_targets(statistics, views, targets), none
        for label in least[counts[least] > 0].tolist():
            place = ((decided == targets) & (targets == label)).nonzero()[0]
            wrong = targets.clone()
            wrong[place] = (label + 1) % classes
            after = self._of_targets(statistics, views, wrong)
            most = most.maximum(after - before)
        return most

    def _of_targets(
        self, statistics: ObservedStatistics, views: Tensor, targets: Tensor
    ) -> Tensor:
        """Return predicted excesses [M] if examples had other targets [N]."""
        weights = torch.ones(1, len(targets)).to(views.device)
        given = targets.to(views.device), weights, self._folds.to(views.device)
        groups = statistics.kind.pooled(views, *given)
        found = {name: part.cpu() for name, part in groups.items()}
        return self._value.means(found)[0, 1:]

    def _sampled(self, statistics: ObservedStatistics, views: Tensor) -> Tensor:
        """Return predictions of views [1, N, V] in all samples, [1 + S, 1 + M]."""
        found = []
        for part in self._weights.split(SAMPLES_AT_ONCE):
            repeated = views.expand(len(part), *views.shape[1:])
            groups = statistics.pooled(repeated, part, self._folds)
            found.append(self._value.means(groups))
        return torch.cat(found)

    def _front_of_queried(self) -> Front:
        """Return the front of what was queried and of the portfolio."""
        groups, phi = self._known.groups, self._search.phi
        if len(self._search.candidates):
            more = self._known.of_these(self._search.candidate_groups)
            groups = {name: torch.cat([groups[name], more[name]]) for name in groups}
            phi = torch.cat([phi, self._search.candidates])
        values = self._value.means(groups)[:, list(self._bounds.axes)]
        best = is_best(values).nonzero().flatten()
        best = best[spread_out(values[best])]
        return Front(values[best], values[best], phi[best])


class _OffsetsSweep:
    """Choices of output offsets alone."""

    def __init__(self, choice: Choice, reach: Reach, untouched: Held) -> None:
        self._choice, self._reach = choice, reach
        self.margin = 0.0
        self.scale = untouched.errors
        self._sweeps = Sweeps(reach.statistics, choice._value)
        self._sweeps.run([*map(self._aim, MARGINS), *self._along_front()])
        means = self._sweeps.means
        aims = torch.stack([self._aim(margin)(means) for margin in MARGINS])
        best = aims.argsort(dim=1, stable=True)[:, :KEPT].flatten()
        self._points = self._front_points(choice._bounds.axes)
        self._pool = torch.cat([best, self._points]).unique()
        offsets = self._sweeps.offsets[self._pool]
        # By what each row sees: the last one sees all.
        self._means = torch.stack(
            [self._sweeps.predicted(offsets, row) for row in choice._kept]
        )

    @property
    def is_exhaustive(self) -> bool:
        """Whether all that offsets can do was tried."""
        return self._sweeps.is_exhaustive

    def within(self) -> Held:
        """Return the offsets of the least margin that meets the bounds surely enough.

        Where none does, those of the greatest probability.
        """
        found = self._at(0.0)
        self.scale = found.errors
        best = found
        for margin in MARGINS[1:]:
            if best.all_met >= self._choice._bounds.confidence:
                break
            found = self._at(margin)
            self.scale = found.errors
            if found.all_met > best.all_met:
                best, self.margin = found, margin
        return best

    def front(self, axes: tuple[int, ...]) -> Front:
        """Return the front, with what cross-fitting says of each of its points."""
        sweeps, columns = self._sweeps, list(axes)
        values = sweeps.means[self._points][:, columns]
        scale = (values.amax(0) - values.amin(0)).clamp_min(SMALL)
        means, elsewhere = self._means[:, :, columns], []
        for point in values:
            aim = towards(point, scale)
            chosen = torch.stack([aim(row).argmin() for row in means[:-1]])
            elsewhere.append(self._held_out(chosen)[0, columns])
        phi = [self._reach.whole(each) for each in sweeps.offsets[self._points]]
        return Front(values, torch.stack(elsewhere), torch.stack(phi))

    def _aim(self, margin: float) -> Aim:
        """Return the aim of the best objective within bounds tightened by a margin."""

        def aim(means: Tensor) -> Tensor:
            tighter = means.clone()
            tighter[:, 1:] += margin * self.scale
            return constrained_cost(tighter)

        return aim

    def _along_front(self) -> Iterator[Aim]:
        """Yield aims at points between the ends of the front."""
        axes = list(self._choice._bounds.axes)
        for weights in _directions(len(axes)):

            def aim(means: Tensor, weights: Tensor = weights) -> Tensor:
                values = means[:, axes]
                low, high = values[values.argmin(0)].aminmax(dim=0)
                return towards(low, (high - low).clamp_min(SMALL) / weights)(values)

            yield aim

    def _front_points(self, axes: tuple[int, ...]) -> Tensor:
        values = self._sweeps.means[:, list(axes)]
        best = is_best(values).nonzero().flatten()
        return best[spread_out(values[best])]

    def _at(self, margin: float) -> Held:
        """Return the offsets that are best with a margin, as folds see them."""
        chosen = torch.stack([self._aim(margin)(row).argmin() for row in self._means])
        offsets = self._sweeps.offsets[self._pool[chosen]]
        statistics, choice = self._reach.statistics, self._choice
        held_out = statistics.held_out(offsets[:-1], choice._folds)
        seen = statistics.views(offsets[-1:])
        phi = self._reach.whole(offsets[-1])
        return choice._held(phi, self._reach.name, statistics, held_out, seen)

    def _held_out(self, chosen: Tensor) -> Tensor:
        """Return predictions [1, 1 + M] of held-out examples, with a choice by fold."""
        statistics, choice = self._reach.statistics, self._choice
        offsets = self._sweeps.offsets[self._pool[chosen]]
        views = statistics.held_out(offsets, choice._folds)
        weights = torch.ones(1, len(choice._folds))
        groups = statistics.pooled(views, weights, choice._folds)
        return choice._value.means(groups)


def _directions(metrics: int) -> Iterator[Tensor]:
    """Yield weights of metrics, evenly over the simplex, without its corners."""
    if metrics == 1:
        return
    if metrics == 2:
        for share in torch.linspace(0, 1, 10)[1:-1]:
            yield torch.stack([share, 1 - share]).double()
        return
    parts = 6
    for first in range(1, parts - 1):
        for second in range(1, parts - first):
            weights = (first, second, parts - first - second)
            yield torch.tensor(weights, dtype=torch.float64) / parts

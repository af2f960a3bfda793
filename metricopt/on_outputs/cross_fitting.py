"""Cross-fitting: what to move, how far to follow a value function, and what it gains.

A value function of statistics is asked without a query, for any examples. So the choice
of phi is validated as a learner would be: phi is fitted anew without each fold of the
observe split, and judged on the fold it has not seen. Long searches over-fit the
observe split; this says when to stop, and whether to start at all.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, takewhile

import torch
from torch import Tensor

from metricopt.methods.attempts import Attempt
from metricopt.on_outputs.coordinates import Pace, Reach, descend
from metricopt.on_outputs.exact_offsets import is_decided, swept_offsets
from metricopt.on_outputs.folds import bootstrap, folds_of
from metricopt.on_outputs.looks import (
    Followed,
    Look,
    chance_of,
    simplest,
    without_a_say,
)
from metricopt.on_outputs.statistics_value import CostOfStatistics
from metricopt.statistics.contract import anchored

Clock = Callable[[], bool]
"""Says whether what takes long has to end where it is."""
SHARES = (1.0, 0.5)
"""Shares of the offsets of an exact search that are looked at. More looks would differ
by chance, and folds that choose differently are worse together than each of them."""
SAMPLES_AT_ONCE = 20
"""Samples of the bootstrap whose statistics are computed together."""
NO_SPREAD = 1e-6
"""Spread of a gain in the bootstrap that is rounding, in units of cost."""


@dataclass(frozen=True)
class CrossFitting:
    """How phi is cross-fitted.

    Attributes:
        folds: parts of the observe split, alike in labels.
        steps: steps of the longest descent.
        rungs: steps after which only the better half of the descents goes on.
        every: steps between two looks at the held-out folds.
        examples: examples of the observe split that one step sees.
        rate: about how far a step moves the statistics at first; it falls to 0. That
            and an average of phi beat a constant rate.
        caution: deviations added to the predicted cost, so that descent stays where
            the value function knows the metric.
        memory: memory of the moving average of phi that is looked at, since steps on
            few examples are noisy.
        samples: samples of the bootstrap.
        level: standard errors by which a gain has to exceed 0. Errors are those of the
            bootstrap, times 1.5 for folds that share examples; 2/3 is one error of the
            bootstrap alone, which chance would exceed in 16 % of all runs.
        claims: whether the gain that is claimed has to exceed 0 by as much, too, and
            not only the gain before it has paid for the choice of a descent.
        second: whether the best phi that was queried is checked on parts of the observe
            split where what was cross-fitted is refuted, or not known well enough.
        steepest: most that a coordinate changes the cost by in a step; more is clipped.
    """

    folds: int = 5
    steps: int = 100
    rungs: tuple[int, ...] = (20, 50)
    every: int = 10
    examples: int = 500
    rate: float = 0.03
    caution: float = 1.0
    memory: float = 0.8
    samples: int = 200
    level: float = 2 / 3
    claims: bool = False
    second: bool = False
    steepest: float = math.inf

    def asking(self, level: float) -> "CrossFitting":
        """Return the same for a user who wants a gain of so many standard errors."""
        return replace(self, level=level, claims=True)

    @property
    def inflation(self) -> float:
        """Return what the error of the bootstrap is multiplied by.

        Folds learn from the same examples, so their gains are not independent.

        Source: Nadeau and Bengio, Machine Learning 52, 2003, for folds of 1/F.
        """
        return math.sqrt(1 + self.folds / (self.folds - 1))


@dataclass(frozen=True)
class CrossFitted:
    """What cross-fitting found.

    Attributes:
        phi: fitted on all folds, shape [d].
        moved: which part of phi was fitted, and from where.
        steps: for how long: as many as were best.
        gain: expected decrease of the cost on unseen examples, by the value function.
        error: standard error of the gain.
        predicted: cost that is predicted of phi on all examples.
        own: the gain as if no other descent had been tried. It decides whether phi is
            moved; `gain` has paid for the choice, and is what is claimed.
        obvious: what was tried on the way that anybody would try by hand.
    """

    phi: Tensor
    moved: str
    steps: int
    gain: float
    error: float
    predicted: float
    own: float
    obvious: tuple[Attempt, ...] = ()


def cross_fit(
    value: CostOfStatistics,
    found: list[Reach],
    settings: CrossFitting,
    generator: torch.Generator,
    is_late: Clock,
) -> CrossFitted:
    """Descend a value function for as long as held-out folds gain.

    Of all that may be moved, `found`, the simplest is taken that is as good as the
    best; it stands before the others. The value function says what statistics are
    worth. A call that is late chooses from what was looked at until then.
    """
    statistics = found[0].statistics
    folds = folds_of(statistics, settings.folds, generator)
    fits = [_CrossFit(value, reach, settings, folds, is_late) for reach in found]
    descents = _race(fits, settings, generator)
    weights = bootstrap(statistics, settings.samples, generator)
    after = torch.stack([fits[0].costs(each.held_out, weights) for each in descents])
    errors = chance_of(after)
    chosen = simplest(after[:, 0], errors)
    best = descents[chosen].best
    untouched = statistics.views(torch.zeros(1, statistics.size))
    before = fits[0].costs(untouched, weights)
    own = before - after[chosen]
    gains = before - fits[0].costs(without_a_say(descents, errors, folds), weights)
    spread = gains[1:].std()
    if spread < NO_SPREAD:
        # Without a say, every fold stays where it is, and that is known exactly.
        spread = own[1:].std()
    attempts = [each.obvious for each in fits] + [each.obvious for each in descents]
    predicted, _ = value.predict(best.reach.statistics.exact(best.moved[None]))
    return CrossFitted(
        best.reach.whole(best.moved),
        best.reach.name,
        best.steps,
        min(gains[0].item(), before[0].item() - best.seen),
        spread.item() * settings.inflation,
        predicted.item(),
        min(own[0].item(), before[0].item() - best.seen),
        tuple(chain.from_iterable(attempts)),
    )


def followed(
    value: CostOfStatistics,
    found: list[Reach],
    settings: CrossFitting,
    folds: Tensor,
    generator: torch.Generator,
    is_late: Clock,
) -> list[Followed]:
    """Return the descents of a value function, as folds [N] have seen them."""
    fits = [_CrossFit(value, reach, settings, folds, is_late) for reach in found]
    return _race(fits, settings, generator)


def _race(
    fits: list["_CrossFit"], settings: CrossFitting, generator: torch.Generator
) -> list[Followed]:
    """Follow descents, half of which end at every rung.

    Those that need not run the network are cheap, and go on to the end. A call that is
    late follows none further, and begins none but the first.

    Source: successive halving, Jamieson and Talwalkar, AISTATS 2016.
    """
    exact = [fit.exact_looks() for fit in fits if fit.is_exact]
    descents = [*exact, *(fit.looks(generator) for fit in fits)]
    is_late, found = fits[0].is_late, [Followed(next(descents[0]), fits[0].folds)]
    for each in takewhile(lambda _: not is_late(), descents[1:]):
        found.append(Followed(next(each), fits[0].folds))
    running = list(zip(found, descents, strict=False))
    for step in range(settings.every, settings.steps + 1, settings.every):
        for followed, descent in takewhile(lambda _: not is_late(), running):
            look = next(descent, None)
            if look is not None:
                followed.add(look)
        if step in settings.rungs:
            running.sort(key=lambda each: each[0].best.cost)
            cheap = [each for each in running if each[0].best.reach.is_cheap]
            others = [each for each in running if not each[0].best.reach.is_cheap]
            running = cheap + others[: (len(others) + 1) // 2]
    return found


@dataclass(frozen=True)
class _CrossFit:
    """A descent on all folds, and one without each: row f leaves fold f out."""

    value: CostOfStatistics
    reach: Reach
    settings: CrossFitting
    folds: Tensor
    is_late: Clock

    @property
    def kept(self) -> Tensor:
        """What each row sees, [folds + 1, N]: the last one leaves no fold out."""
        rows = torch.arange(self.settings.folds + 1)
        return (self.folds != rows[:, None]).float()

    def costs(self, views: Tensor, weights: Tensor) -> Tensor:
        """Return what is predicted of views [1, N, V], weighted in B ways [B, N].

        Each view may be by the row that left out the fold of its example.
        """
        found = []
        for part in weights.split(SAMPLES_AT_ONCE):
            repeated = views.expand(len(part), *views.shape[1:])
            groups = self.reach.statistics.pooled(repeated, part.float(), self.folds)
            found.append(self.value.predict(groups)[0])
        return torch.cat(found)

    def looks(self, generator: torch.Generator) -> Iterator[Look]:
        """Descend, and yield what held-out folds say on the way."""
        settings, reach = self.settings, self.reach
        start = self._start()
        objective = _Objective(self, start, generator)
        pace = Pace(
            settings.rate, settings.steps, anneal=True, steepest=settings.steepest
        )
        path = descend(objective, start, reach.scale, pace)
        yield self._look(0, start)
        average = start
        for step, moved in enumerate(path, 1):
            if self.is_late():
                return
            average = average.lerp(moved, 1 - settings.memory)
            if step % settings.every == 0:
                yield self._look(step, average)
                # Far from where they were made to agree, smooth and exact part.
                objective.anchor_at(moved)

    @property
    def is_exact(self) -> bool:
        """Whether what is moved is searched exactly, before it is descended."""
        return self.reach.is_cheap and is_decided(self.reach.statistics)

    def exact_looks(self) -> Iterator[Look]:
        """Search output offsets exactly, and yield what held-out folds say of them."""
        statistics = self.reach.statistics
        own = replace(self, reach=replace(self.reach, name="output offsets"))
        untouched = torch.zeros(len(self.kept), statistics.size)
        yield own._look(0, untouched)
        outputs = statistics.outputs(untouched)
        sweeps = swept_offsets(
            self.value, statistics, outputs, self.kept, caution=self.settings.caution
        )
        *_, moved = sweeps
        offsets = untouched.clone()
        offsets[:, : moved.shape[1]] = moved  # scales come after the offsets
        for share in SHARES:
            look = own._look(0, share * offsets)
            yield replace(look, by_hand="thresholds") if share == 1 else look

    @property
    def obvious(self) -> list[Attempt]:
        """The best start that anybody would try by hand, if any changes the cost."""
        name, count = self.reach.by_hand
        if not count:
            return []
        costs = self._start_costs[:, -1]
        own, starts = costs[-count:], self.reach.starts[-count:]
        if bool((own == costs[0]).all()):
            return []
        return [Attempt(name, self.reach.whole(starts[own.argmin()]), own.min().item())]

    @cached_property
    def _start_costs(self) -> Tensor:
        """Cost of every start by what each row sees, [s, folds + 1]."""
        views = self.reach.statistics.views
        starts = self.reach.starts
        return torch.stack(
            [self.costs(views(each[None]), self.kept) for each in starts]
        )

    def _start(self) -> Tensor:
        """Return where rows start, [folds + 1, m]: each where its own folds say."""
        starts = self.reach.starts
        if len(starts) == 1:
            return starts.repeat(self.settings.folds + 1, 1)
        return starts[self._start_costs.argmin(0)]

    def _look(self, step: int, moved: Tensor) -> Look:
        """Judge the rows of `moved` [folds + 1, m] on the folds they have not seen."""
        statistics, weights = self.reach.statistics, self.kept
        held_out = statistics.held_out(moved[:-1], self.folds)
        seen = statistics.views(moved[-1:])
        own, whole = self.costs(held_out, weights), self.costs(seen, weights)
        worse = own.maximum(whole)
        return Look(
            self.reach,
            step,
            moved[-1],
            whole[-1].item(),
            worse[-1].item(),
            worse[:-1],
            held_out,
        )


class _Objective:
    """What the rows descend: predicted cost, each on the folds it may see."""

    def __init__(
        self, fit: _CrossFit, start: Tensor, generator: torch.Generator
    ) -> None:
        self._fit, self._generator = fit, generator
        self._kept = fit.kept
        self.anchor_at(start)

    def anchor_at(self, moved: Tensor) -> None:
        """Let smooth statistics be exact here."""
        statistics = self._fit.reach.statistics
        self._outputs = statistics.outputs(moved)
        self._exact = statistics.of_outputs(self._outputs, self._kept)

    def __call__(self, moved: Tensor) -> Tensor:
        """Return the cost of every row [B, m] on examples drawn now, [B]."""
        fit, statistics = self._fit, self._fit.reach.statistics
        drawn = statistics.draw(fit.settings.examples, self._generator)
        weights = self._kept[:, drawn]
        there = statistics.smooth_of(self._outputs[:, drawn], drawn, weights)
        here = statistics.smooth(moved, drawn, weights)
        mean, deviation = fit.value.predict(anchored(here, there, self._exact))
        return mean + fit.settings.caution * deviation

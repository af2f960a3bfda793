"""Cross-fitting: how far to follow a value function, and what that is worth.

A value function of statistics is asked without a query, for any examples. So the choice
of phi is validated as a learner would be: phi is fitted anew without each fold of the
observe split, and judged on the fold it has not seen. Long searches over-fit the
observe split; this says when to stop, and whether to start at all.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.tasks.observed_statistics import ObservedStatistics
from metricopt.values.statistics_value import StatisticsValueFunction

SAMPLES_AT_ONCE = 20
"""Samples of the bootstrap whose statistics are computed together."""


@dataclass(frozen=True)
class CrossFitting:
    """How phi is cross-fitted.

    Attributes:
        folds: parts of the observe split, alike in labels.
        steps: of the longest descent from phi = 0.
        every: steps between two looks at the held-out folds.
        examples: of the observe split that one step sees.
        caution: deviations added to the predicted cost, so that descent stays where
            the value function knows the metric.
        memory: of the moving average of phi that is looked at, since steps on few
            examples are noisy.
        patience: looks without a new best after which the descent ends.
        samples: of the bootstrap.
        level: standard errors by which a gain has to exceed 0.
    """

    folds: int = 5
    steps: int = 100
    every: int = 10
    examples: int = 500
    caution: float = 1.0
    memory: float = 0.8
    patience: int = 8
    samples: int = 200
    level: float = 1.0


@dataclass(frozen=True)
class CrossFitted:
    """What cross-fitting found.

    Attributes:
        phi: fitted on all folds for as many steps as were best, shape [d].
        steps: how many.
        gain: expected decrease of the cost on unseen examples, by the value function.
        error: standard error of the gain.
        is_shown: whether the gain is large enough for its error.
    """

    phi: Tensor
    steps: int
    gain: float
    error: float
    is_shown: bool


def stratified_folds(targets: Tensor, folds: int, generator: torch.Generator) -> Tensor:
    """Return a fold in [0, folds) for every label [N], alike in labels and size."""
    shuffled = torch.randperm(len(targets), generator=generator)
    order = shuffled[targets[shuffled].argsort(stable=True)]
    found = torch.empty(len(targets), dtype=torch.long)
    found[order] = torch.arange(len(targets)) % folds
    return found


@dataclass(frozen=True)
class _Judge:
    """A value function and the statistics it is asked about."""

    value: StatisticsValueFunction
    statistics: ObservedStatistics

    def cost(self, outputs: Tensor) -> float:
        """Return the cost that is predicted of outputs [1, N, C]."""
        return self.value.predict(self.statistics.of_outputs(outputs))[0].item()

    def held_out_cost(self, held_out: Tensor, phi: Tensor) -> float:
        """Return the cost of held-out outputs, or of phi [1, d] where that is more.

        Folds that err in different ways look better together than each of them is.
        """
        return max(self.cost(held_out), self.cost(self.statistics.outputs(phi)))

    def costs(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """Return the same for examples weighted in B ways, [B, N]."""
        found = []
        for part in weights.split(SAMPLES_AT_ONCE):
            repeated = outputs.expand(len(part), -1, -1)
            groups = self.statistics.of_outputs(repeated, part)
            found.append(self.value.predict(groups)[0])
        return torch.cat(found)


def cross_fit(
    value: StatisticsValueFunction,
    statistics: ObservedStatistics,
    settings: CrossFitting,
    *,
    size: int,
    rate: float,
    generator: torch.Generator,
) -> CrossFitted:
    """Descend a value function from phi = 0 for as long as held-out folds gain.

    Args:
        value: of the statistics; says what they are worth.
        statistics: of the observe split.
        settings: how.
        size: number d of adapter parameters.
        rate: learning rate of Adam.
        generator: source of all randomness.
    """
    judge = _Judge(value, statistics)
    folds = stratified_folds(statistics.targets, settings.folds, generator)
    path, held_out, after = _descend(
        judge, settings, folds, torch.zeros(settings.folds + 1, size), rate, generator
    )
    untouched = statistics.outputs(torch.zeros(1, size))
    before = judge.cost(untouched)
    best = after.index(min(after))
    gain = before - after[best]
    weights = _bootstrap(settings.samples, len(folds), generator)
    gains = judge.costs(untouched, weights) - judge.costs(held_out[best], weights)
    error = gains.std().item()
    steps = (best + 1) * settings.every
    shown = gain > settings.level * error
    return CrossFitted(path[best], steps, gain, error, is_shown=shown)


def _bootstrap(samples: int, examples: int, generator: torch.Generator) -> Tensor:
    """Return how often every example is in every sample, [samples, examples]."""
    drawn = torch.randint(examples, (samples, examples), generator=generator)
    counts = torch.zeros(samples, examples)
    return counts.scatter_add_(1, drawn, torch.ones_like(counts))


def _descend(
    judge: _Judge,
    settings: CrossFitting,
    folds: Tensor,
    start: Tensor,
    rate: float,
    generator: torch.Generator,
) -> tuple[list[Tensor], list[Tensor], list[float]]:
    """Return phi [d] fitted on all folds, held-out outputs and their cost, on the way.

    Row f of the start leaves fold f out, the last row none.
    """
    statistics, count = judge.statistics, settings.folds
    kept = (folds != torch.arange(count + 1)[:, None]).float()
    phi = start.requires_grad_()
    optimizer = torch.optim.Adam([phi], lr=rate, eps=1e-12)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    average = torch.zeros_like(start)
    path, held_out, costs = [], [], []
    for step in range(settings.steps):
        if step % settings.every == 0:
            # Far from where they were made to agree, smooth and exact part.
            anchor = phi.detach().clone()
            exact = statistics.exact(anchor, kept)
        drawn = torch.randperm(len(folds), generator=generator)[: settings.examples]
        with torch.no_grad():
            at_anchor = statistics.smooth(anchor, drawn, kept[:, drawn])
        smooth = statistics.smooth(phi, drawn, kept[:, drawn])
        groups = {name: exact[name] + smooth[name] - at_anchor[name] for name in exact}
        mean, deviation = judge.value.predict(groups)
        optimizer.zero_grad()
        (mean + settings.caution * deviation).sum().backward()
        optimizer.step()
        rates.step()
        average = average.lerp(phi.detach(), 1 - settings.memory)
        if (step + 1) % settings.every == 0:
            path.append(average[count])
            held_out.append(statistics.held_out(average[:count], folds))
            costs.append(judge.held_out_cost(held_out[-1], average[count:]))
            if len(costs) - costs.index(min(costs)) > settings.patience:
                break
    return path, held_out, costs

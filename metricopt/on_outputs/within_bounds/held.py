"""What is predicted of a phi on examples that did not choose it, with its bounds."""

from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.metrics.base import ROUNDING
from metricopt.metrics.confusion import predict_labels
from metricopt.on_outputs.cross_fitting import SAMPLES_AT_ONCE, CrossFitting
from metricopt.on_outputs.folds import bootstrap, folds_of
from metricopt.on_outputs.search import OutputsSearch
from metricopt.on_outputs.statistics_value import Explained
from metricopt.on_outputs.within_bounds.value import ConstrainedValueFunction
from metricopt.reading.outputs import are_labels
from metricopt.tasks.observed_statistics import ObservedStatistics

FLIPPED = 5
"""Classes, those decided least, in which a further error is thought of."""


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


class Elsewhere:
    """Other examples: those of the folds that are left out, and those drawn anew.

    Attributes:
        value: what is predicted.
        folds: the fold of every example, shape [N].
        kept: what a row sees that leaves out a fold, and the last one, which leaves
            out none, shape [folds + 1, N].
    """

    def __init__(
        self,
        search: OutputsSearch,
        known: Explained,
        settings: CrossFitting,
        generator: torch.Generator,
    ) -> None:
        assert isinstance(known.value, ConstrainedValueFunction)
        self.value, statistics = known.value, known.statistics
        self.folds = folds_of(statistics, settings.folds, generator)
        rows = torch.arange(settings.folds + 1)
        self.kept = (self.folds != rows[:, None]).float()
        self._weights = bootstrap(statistics, settings.samples, generator)
        chance = torch.rand(settings.samples, 1, generator=generator).double()
        self._errors = -torch.log1p(-chance)  # how many, exponentially distributed
        # What predictions lacked counts against a bound.
        self._doubt = torch.tensor(search.prediction_errors[1:], dtype=torch.float64)
        size = settings.samples, len(self._doubt)
        self._surprise = torch.randn(size, generator=generator).double()

    def held(
        self,
        phi: Tensor,
        moved: str,
        statistics: ObservedStatistics,
        held_out: Tensor,
        seen: Tensor,
    ) -> Held:
        """Return what is predicted of views [1, N, V], held out and seen."""
        found = [self._sampled(statistics, held_out)]
        if seen is not held_out:
            found.append(self._sampled(statistics, seen))
        samples, own = found[0][0], found[-1][0]
        once = self._one_more_error(statistics, seen)
        errors = (samples[1:, 1:].var(0) + once.square()).sqrt()
        within = [self._is_within(*each, once) for each in found]
        each_met = torch.stack([each.mean(0) for each in within]).amin(0)
        all_met = min(each.amin(1).mean().item() for each in within)
        return Held(phi, moved, own[0], samples, errors, each_met, all_met)

    def pooled(self, statistics: ObservedStatistics, views: Tensor) -> Tensor:
        """Return predictions [1, 1 + M] of views [1, N, V], of all examples once."""
        weights = torch.ones(1, len(self.folds))
        return self.value.means(statistics.pooled(views, weights, self.folds))

    def _is_within(self, means: Tensor, deviations: Tensor, once: Tensor) -> Tensor:
        """Return whether each bound is met in every sample, [S, M].

        Where none of few examples was wrong, the bootstrap knows of no error; one more,
        with the excess `once` [M], may come at any time.
        """
        excess = means[1:, 1:] + self._surprise * deviations[1:, 1:]
        excess = excess + self._errors * once + self._doubt
        return (excess <= ROUNDING).double()

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
        given = targets.to(views.device), weights, self.folds.to(views.device)
        groups = statistics.kind.pooled(views, *given)
        found = {name: part.cpu() for name, part in groups.items()}
        return self.value.means(found)[0, 1:]

    def _sampled(
        self, statistics: ObservedStatistics, views: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return predictions of views [1, N, V] in all samples.

        Mean and standard deviation, each [1 + S, 1 + M].
        """
        found = []
        for part in self._weights.split(SAMPLES_AT_ONCE):
            repeated = views.expand(len(part), *views.shape[1:])
            groups = statistics.pooled(repeated, part.float(), self.folds)
            found.append(self.value.predict_each(groups))
        means, deviations = zip(*found, strict=True)
        return torch.cat(means), torch.cat(deviations)

"""Cost-sensitive training for the F-measure.

F_beta >= t holds exactly where a certain cost-weighted error is small enough, and the
costs are known for each t. So one classifier is trained for every t on a grid, the
threshold of each is tuned on the observe split, and the best pair is kept.

Source: Parambath, Usunier and Grandvalet, NeurIPS 2014. Differs: every grid point
fine-tunes the same network, which should be pre-trained with cross-entropy, so that
short runs are enough; the source starts from scratch. Thresholds are tuned on logits.
"""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from baselines.network_methods.contract import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.batches import Batches
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.prediction import predict_examples
from baselines.validation import Validation, check_binary, labels
from metricopt.errors import ConfigError
from metricopt.losses.contract import Loss


class Costs(NamedTuple):
    """What each kind of error costs, in any common unit."""

    false_negative: float
    false_positive: float


def f_measure_costs(t: float, *, beta_squared: float = 1.0) -> Costs:
    """Return the costs under which the best classifier reaches F_beta = t.

    Args:
        t: level of F_beta, in (0, 1).
        beta_squared: weight of recall against precision, above 0.

    Returns:
        1 + beta^2 - t for a false negative and t for a false positive.

    Raises:
        ConfigError: if a setting is out of its range.
    """
    if not 0 < t < 1 or beta_squared <= 0:
        raise ConfigError(
            "cost-sensitive training needs t in (0, 1) and beta_squared > 0, got "
            f"t={t}, beta_squared={beta_squared}"
        )
    return Costs(1.0 + beta_squared - t, t)


def bayes_threshold(t: float, *, beta_squared: float = 1.0) -> float:
    """Return the threshold on P(y = 1) that is optimal under the costs of t."""
    costs = f_measure_costs(t, beta_squared=beta_squared)
    return costs.false_positive / sum(costs)


def weighted_cross_entropy(outputs: Tensor, targets: Tensor, costs: Costs) -> Tensor:
    """Return the mean of cost times binary cross-entropy.

    Args:
        outputs: logits of the positive class, shape [N, 1].
        targets: labels, shape [N], integers in {0, 1}.
        costs: weight of positives (false negatives) and of negatives.

    Returns:
        Scalar in [0, inf).
    """
    labels = targets.to(outputs.dtype)
    weights = labels * costs.false_negative + (1 - labels) * costs.false_positive
    return functional.binary_cross_entropy_with_logits(outputs[:, 0], labels, weights)


class BestThreshold(NamedTuple):
    """The best threshold on scores, the F there, and the number of them compared."""

    threshold: float
    f: float
    evaluations: int


def best_f_threshold(
    scores: Tensor, targets: Tensor, *, beta_squared: float = 1.0
) -> BestThreshold:
    """Return the lowest threshold among the scores at which F_beta is greatest.

    An example is positive when its score reaches the threshold. One pass over the
    sorted scores gives F at every distinct score.

    Args:
        scores: any increasing function of the logit, shape [N].
        targets: labels, shape [N], integers in {0, 1}, both present.
        beta_squared: weight of recall against precision, above 0.

    Returns:
        Threshold, F_beta in [0, 1], and the number of distinct scores.
    """
    distinct, group = scores.unique(return_inverse=True)
    positive = (targets == 1).double()
    counts = torch.zeros(2, len(distinct), dtype=torch.float64, device=scores.device)
    counts[0].index_add_(0, group, positive)
    counts[1].index_add_(0, group, torch.ones_like(positive))
    hits, predicted = counts.flip(1).cumsum(1).flip(1)
    f = (1.0 + beta_squared) * hits / (beta_squared * positive.sum() + predicted)
    best = int(f.argmax())
    return BestThreshold(float(distinct[best]), float(f[best]), len(distinct))


class _Candidate(NamedTuple):
    """A network trained for one level of F_beta, with its best threshold."""

    t: float
    network: nn.Module
    choice: BestThreshold


@NETWORK_METHODS.register("cost-sensitive")
@dataclass(frozen=True, kw_only=True)
class CostSensitive(NetworkMethod):
    """Fine-tune at every cost ratio of a grid and keep the best by F on observe.

    It optimises F_beta, whatever metric it is judged by; that metric is never called.
    Each scan for a threshold sorts the scores once, but sees F at every distinct score.
    Each of these counts as a query on the whole observe split.

    Attributes:
        beta_squared: weight of recall against precision, above 0.
        grid: levels t of F_beta to train for, each in (0, 1).
    """

    beta_squared: float = 1.0
    grid: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

    def __post_init__(self) -> None:
        if not self.grid:
            raise ConfigError("grid must hold at least one t, got none")
        for t in self.grid:
            f_measure_costs(t, beta_squared=self.beta_squared)

    def check_suits(self, outputs: Tensor, targets: Tensor) -> None:
        """Check for one logit and two classes; see `NetworkMethod.check_suits`."""
        check_binary(outputs, targets, user="cost-sensitive training")

    def train(
        self,
        network: nn.Module,
        batches: Batches,
        validation: Validation,
        *,
        training: Training,
        generator: torch.Generator,
    ) -> NetworkResult:
        """Fine-tune copies of the network; see `NetworkMethod.train`.

        Raises:
            ShapeError: if the network has more than one output.
            DataError: if a split lacks one of the classes.
        """
        self.check_problem(network, batches, validation)
        candidates = []
        for t in self.grid:
            run = TrainingRun(
                copy.deepcopy(network),
                self._loss(t, batches),
                batches,
                training,
                generator=generator,
                observe=validation.observe,
            )
            train(run, hooks=Hooks(self.on_epoch))
            choice = self._choose_threshold(run.network, validation)
            candidates.append(_Candidate(t, run.network, choice))
        best = max(candidates, key=lambda candidate: candidate.choice.f)
        steps = training.epochs * batches.steps_per_epoch
        return NetworkResult(
            best.network,
            threshold=best.choice.threshold,
            queries=validation.queries,
            gradient_steps=steps * len(self.grid),
            notes={
                "t": best.t,
                "observe_f": best.choice.f,
                "passes": len(self.grid),
            },
        )

    def _choose_threshold(
        self, network: nn.Module, validation: Validation
    ) -> BestThreshold:
        scores = predict_examples(network, validation.observe)[:, 0]
        validation.charge(len(scores.unique()))
        targets = labels(validation.observe)
        return best_f_threshold(scores, targets, beta_squared=self.beta_squared)

    def _loss(self, t: float, batches: Batches) -> Loss:
        raw = f_measure_costs(t, beta_squared=self.beta_squared)
        mean = sum(raw) / 2
        # Balanced mini-batches would otherwise cancel the method: the costs apply to
        # the classes in their true shares.
        positive = float((batches.targets == 1).double().mean())
        shares = (2 * positive, 2 * (1 - positive)) if batches.balanced else (1, 1)
        costs = Costs(*(c * share / mean for c, share in zip(raw, shares, strict=True)))
        return lambda outputs, targets: weighted_cross_entropy(outputs, targets, costs)

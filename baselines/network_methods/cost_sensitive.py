"""Cost-sensitive training for the F-measure.

F1 >= t holds exactly where a certain cost-weighted error is small enough, and the
costs are known for each t. So one classifier is trained for every t on a grid, the
threshold of each is tuned on the observe split, and the best pair is kept.

Source: Parambath, Usunier and Grandvalet, NeurIPS 2014. Differs: every grid point
fine-tunes the same network, which should be pre-trained with cross-entropy, so that
short runs are enough; the source starts from scratch. Thresholds are tuned on logits.
"""

import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.batches import Batches
from baselines.training.prediction import predict_examples
from baselines.validation import Validation, check_binary, labels
from metricopt.errors import ConfigError, require_ranges
from metricopt.losses.contract import Loss


class Costs(NamedTuple):
    """What each kind of error costs, in any common unit."""

    false_negative: float
    false_positive: float


def f_measure_costs(t: float) -> Costs:
    """Return the costs under which the best classifier reaches F1 = t.

    Args:
        t: level of F1, in (0, 1).

    Returns:
        2 - t for a false negative and t for a false positive.

    Raises:
        ConfigError: if t is out of its range.
    """
    require_ranges("cost-sensitive training", {"t": t}, t="in (0, 1)")
    return Costs(2.0 - t, t)


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
    """The best threshold on scores, the F1 there, and the number of them compared."""

    threshold: float
    f: float
    evaluations: int


def best_f_threshold(scores: Tensor, targets: Tensor) -> BestThreshold:
    """Return the lowest threshold among the scores at which F1 is greatest.

    An example is positive when its score reaches the threshold. One pass over the
    sorted scores gives F1 at every distinct score.

    Args:
        scores: any increasing function of the logit, shape [N].
        targets: labels, shape [N], integers in {0, 1}, both present.

    Returns:
        Threshold, F1 in [0, 1], and the number of distinct scores.
    """
    distinct, group = scores.unique(return_inverse=True)
    positive = (targets == 1).double()
    counts = torch.zeros(2, len(distinct), dtype=torch.float64, device=scores.device)
    counts[0].index_add_(0, group, positive)
    counts[1].index_add_(0, group, torch.ones_like(positive))
    hits, predicted = counts.flip(1).cumsum(1).flip(1)
    f = 2.0 * hits / (positive.sum() + predicted)
    best = int(f.argmax())
    return BestThreshold(float(distinct[best]), float(f[best]), len(distinct))


class _Candidate(NamedTuple):
    """A network trained for one level of F1, with its best threshold."""

    t: float
    network: nn.Module
    choice: BestThreshold


@NETWORK_METHODS.register("cost-sensitive")
@dataclass(frozen=True, kw_only=True)
class CostSensitive(NetworkMethod):
    """Fine-tune at every cost ratio of a grid and keep the best by F1 on observe.

    It optimises F1, whatever metric it is judged by; that metric is never called.
    Each scan for a threshold sorts the scores once, but sees F1 at every distinct
    score. Each of these counts as a query on the whole observe split.

    Attributes:
        grid: levels t of F1 to train for, each in (0, 1).
    """

    grid: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

    def __post_init__(self) -> None:
        if not self.grid:
            raise ConfigError("grid must hold at least one t, got none")
        for t in self.grid:
            f_measure_costs(t)

    def check_suits(self, outputs: Tensor, targets: Tensor) -> None:
        """Check for one logit and two classes; see `NetworkMethod.check_suits`."""
        check_binary(outputs, targets, user="cost-sensitive training")

    def _train(self, given: Assignment) -> NetworkResult:
        candidates = []
        for t in self.grid:
            network = copy.deepcopy(given.network)
            loss, observe = scaled_loss(t, given.batches), given.validation.observe
            run = given.trained(network, loss, observe)
            choice = _chosen_threshold(network, given.validation)
            candidates.append(_Candidate(t, network, choice))
        t, network, choice = max(candidates, key=lambda candidate: candidate.choice.f)
        notes = {"t": t, "observe_f": choice.f, "passes": len(self.grid)}
        found = given.result(network, run.steps * len(self.grid), notes)
        # What reaches the threshold exceeds the number below it.
        reached, least = torch.tensor([choice.threshold, -torch.inf])
        return replace(found, threshold=torch.nextafter(reached, least).item())


def _chosen_threshold(network: nn.Module, validation: Validation) -> BestThreshold:
    scores = predict_examples(network, validation.observe)[:, 0]
    validation.charge(len(scores.unique()))
    return best_f_threshold(scores, labels(validation.observe))


def scaled_loss(t: float, batches: Batches) -> Loss:
    """Return cross-entropy weighted for F1 = t, by costs of mean 1."""
    # Balanced mini-batches would otherwise cancel the method: the costs apply to the
    # classes in their true shares. The mean of the costs of any t is 1.
    positive = float((batches.targets == 1).double().mean())
    shares = (2 * positive, 2 * (1 - positive)) if batches.balanced else (1, 1)
    pairs = zip(f_measure_costs(t), shares, strict=True)
    costs = Costs(*(cost * share for cost, share in pairs))
    return lambda outputs, targets: weighted_cross_entropy(outputs, targets, costs)

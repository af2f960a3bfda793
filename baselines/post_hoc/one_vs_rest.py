"""One threshold per class, each chosen for the class against the rest.

What users of a tool for two classes do with several: they tune every class as a problem
of its own, by the same metric, and decide for argmax_k p_k / t_k.

Source: scikit-learn, `TunedThresholdClassifierCV`, called once per class. Differs:
scikit-learn does not say how to decide between several classes above their thresholds,
or below; here it is the class whose probability is the greatest multiple of its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.post_hoc.class_scores import log_probabilities
from baselines.post_hoc.threshold_grid import tune_threshold_on_grid
from baselines.validation import Validation, labels
from metricopt.errors import DataError, MetricError, ShapeError

TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class ClassThresholds:
    """The best threshold of every class against the rest.

    Attributes:
        thresholds: thresholds t of the probability of every class, float64, shape [C].
        queries: metric queries made, one per class and threshold.
    """

    thresholds: Tensor
    queries: int

    def shift(self, outputs: Tensor) -> Tensor:
        """Return log(p_k / t_k) for logits [..., N, C], float64."""
        least = self.thresholds.clamp_min(TINY).to(outputs.device)
        return log_probabilities(outputs.double()) - least.log()


def tune_one_vs_rest(
    outputs: Tensor, validation: Validation, *, thresholds: int = 100
) -> ClassThresholds:
    """Return the thresholds that scikit-learn chooses for every class against the rest.

    Args:
        outputs: class logits on the observe split, shape [N, C], C >= 3.
        validation: the metric, queried once per class and threshold on labels that say
            whether an example is of the class; all classes occur in the observe split.
        thresholds: size of the grid of every class, at least 2.

    Raises:
        ShapeError: if outputs are not [N, C] with C >= 3.
        DataError: if a class is missing, or all its probabilities are equal.
        MetricError: if the metric fails on two classes.
        ConfigError: if there are fewer than 2 thresholds.
        BudgetExceededError: if the queries would exceed their limit.
    """
    targets = labels(validation.observe)
    _check_classes(outputs, targets)
    count = outputs.shape[1]
    validation.meter.require(count * thresholds)
    found = [
        _against_the_rest(outputs, targets, validation, place, thresholds)
        for place in range(count)
    ]
    return ClassThresholds(torch.tensor(found, dtype=torch.float64), count * thresholds)


def _against_the_rest(
    outputs: Tensor, targets: Tensor, validation: Validation, place: int, size: int
) -> float:
    """Return the threshold of one class."""
    logits = outputs.double()
    others = torch.cat([logits[:, :place], logits[:, place + 1 :]], 1)
    log_odds = logits[:, [place]] - others.logsumexp(1, keepdim=True)
    two_classes = validation.relabelled((targets == place).long())
    try:
        found = tune_threshold_on_grid(log_odds, two_classes, thresholds=size)
    except (DataError, MetricError, ShapeError) as error:
        raise type(error)(
            "thresholds one against rest query the metric on two classes with one "
            f"logit, here class {place} against the rest: {error}"
        ) from error
    return found.threshold


def _check_classes(outputs: Tensor, targets: Tensor) -> None:
    if outputs.ndim != 2 or outputs.shape[1] < 3:
        raise ShapeError(
            "thresholds one against rest need class logits, outputs [N, C] with "
            f"C >= 3, got {list(outputs.shape)}; two classes have one threshold"
        )
    classes = targets.unique().tolist()
    if classes != list(range(outputs.shape[1])):
        raise DataError(
            "thresholds one against rest need an observe split with all classes, 0 to "
            f"{outputs.shape[1] - 1}, got {classes}"
        )

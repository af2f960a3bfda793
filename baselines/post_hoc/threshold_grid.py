"""The threshold of scikit-learn's `TunedThresholdClassifierCV`: a grid of 100.

What users of today's tools get. The grid is uniform in the probability, between the
least and the greatest one.

Source: scikit-learn, `TunedThresholdClassifierCV` with `cv="prefit"`, which is called
here. Differs: nothing; the scores are those of a network that is trained already.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baselines.validation import Validation, check_binary, labels
from metricopt.errors import DataError, require_ranges


@dataclass(frozen=True)
class ThresholdGrid:
    """The best threshold of the grid.

    Attributes:
        threshold: threshold of the probability of the positive class, in [0, 1].
        value: the metric there, in native units, on the examples it was tuned on.
        queries: metric queries made, one per threshold.
    """

    threshold: float
    value: float
    queries: int

    def shift(self, outputs: Tensor) -> Tensor:
        """Return probability minus threshold for logits [..., N, 1], float64.

        The threshold itself is positive, as in scikit-learn, so the number below it is
        subtracted; on the scale of logits it would be rounded.
        """
        below = math.nextafter(self.threshold, -1)
        return outputs.double().sigmoid() - below


def tune_threshold_on_grid(
    outputs: Tensor, validation: Validation, *, thresholds: int = 100
) -> ThresholdGrid:
    """Return the threshold that scikit-learn chooses.

    Args:
        outputs: logits of the positive class on the observe split, shape [N, 1].
        validation: the metric, queried once per threshold; its observe split has labels
            in {0, 1}, both present.
        thresholds: size of the grid, at least 2.

    Raises:
        ShapeError: if outputs are not [N, 1].
        DataError: if one of the classes is missing, or all scores are equal.
        ConfigError: if there are fewer than 2 thresholds.
        BudgetExceededError: if the queries would exceed their limit.
    """
    targets = labels(validation.observe)
    check_binary(outputs, targets, user="a threshold grid")
    require_ranges("a grid", {"thresholds": thresholds}, thresholds=">= 2")
    scores = outputs.detach().cpu().double()
    probabilities = scores.sigmoid()
    if np.isclose(probabilities.min().item(), probabilities.max().item()):
        raise DataError("a threshold grid needs scores that differ, got equal ones")
    # Not above: every worker imports this file, and scikit-learn takes seconds.
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import TunedThresholdClassifierCV

    from baselines.post_hoc.fixed_scores import FixedScores

    values: list[Tensor] = []

    def score(_: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
        decided = torch.from_numpy(predicted).to(outputs).view(1, -1, 1)
        value = validation.values(2 * decided - 1)
        values.append(value.cpu())
        return -validation.as_costs(value).item()

    tuned = TunedThresholdClassifierCV(
        FixedScores(),
        scoring=make_scorer(score),
        thresholds=thresholds,
        cv="prefit",
        refit=False,
    ).fit(scores.numpy(), targets.cpu().numpy())
    # The first of equally good thresholds, as there.
    best = int(validation.as_costs(torch.cat(values)).argmin())
    threshold = float(tuned.best_threshold_)
    return ThresholdGrid(threshold, values[best].item(), len(values))

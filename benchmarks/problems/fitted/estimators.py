"""The classifiers that people fit to tables, and the logits they give."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

Estimator = Literal["logistic", "boosting", "mlp"]
ESTIMATORS: tuple[Estimator, ...] = ("logistic", "boosting", "mlp")
LEAST = 1e-9
"""Least probability whose logarithm is taken."""


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _standardised(LogisticRegression(max_iter=1_000))


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _mlp(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return _standardised(MLPClassifier((64,), early_stopping=True, random_state=seed))


def _standardised(estimator: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), estimator)


# Imported where they are used: scikit-learn takes seconds.
_MADE: dict[Estimator, Callable[[int], Any]] = {
    "logistic": _logistic,
    "boosting": _boosting,
    "mlp": _mlp,
}


def fitted(name: Estimator, inputs: Tensor, targets: Tensor, *, seed: int) -> Any:
    """Return a classifier with scikit-learn's defaults, fitted to examples.

    Args:
        name: which one.
        inputs: features, shape [N, F].
        targets: labels, shape [N].
        seed: of the classifier's own random choices.
    """
    from sklearn.exceptions import ConvergenceWarning

    made = _MADE[name](seed)
    with warnings.catch_warnings():
        # Rare classes of a small sample are separable: weights grow without end.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return made.fit(inputs.numpy(), targets.numpy())


def logits(classifier: Any, inputs: Tensor, classes: int) -> Tensor:
    """Return log-probabilities [N, C], or the log-odds [N, 1] of two classes.

    A class that the classifier never saw has the least probability.
    """
    shares = torch.from_numpy(classifier.predict_proba(inputs.numpy()))
    every = torch.zeros(len(shares), classes, dtype=shares.dtype)
    every[:, torch.from_numpy(classifier.classes_)] = shares
    logs = every.clamp_min(LEAST).log().float()
    return logs[:, 1:] - logs[:, :1] if classes == 2 else logs

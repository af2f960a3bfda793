"""The classifiers that people fit to tables, and the logits they give."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

Estimator = Literal["logistic", "boosting", "mlp"]
ESTIMATORS: tuple[Estimator, ...] = ("logistic", "boosting", "mlp")
STOPS_EARLY = 1_000
"""Most examples of which an MLP is trained for all its epochs."""
LEAST = 1e-9
"""Least probability whose logarithm is taken."""


def _logistic(seed: int, examples: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _standardised(LogisticRegression(max_iter=1_000))


def _boosting(seed: int, examples: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _mlp(seed: int, examples: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    # A tenth of few examples is too little to stop by.
    stops = examples > STOPS_EARLY
    return _standardised(MLPClassifier((64,), early_stopping=stops, random_state=seed))


def _standardised(estimator: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), estimator)


# Imported where they are used: scikit-learn takes seconds.
_MADE: dict[Estimator, Callable[[int, int], Any]] = {
    "logistic": _logistic,
    "boosting": _boosting,
    "mlp": _mlp,
}


def fitted(name: Estimator, inputs: Tensor, targets: Tensor, *, seed: int) -> Any:
    """Return a classifier, fitted to examples.

    Settings are scikit-learn's, except that the logistic regression may take 1,000
    steps, and the MLP has 64 units and stops early where there are many examples.

    Args:
        name: which one.
        inputs: features, shape [N, F].
        targets: labels, shape [N].
        seed: of the classifier's own random choices.
    """
    from sklearn.exceptions import ConvergenceWarning

    made = _MADE[name](seed, len(targets))
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

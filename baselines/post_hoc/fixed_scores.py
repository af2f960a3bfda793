"""A classifier of scikit-learn whose scores are those of a trained network."""

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


class FixedScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose inputs are the logits of a network, shape [N, 1]."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, inputs: NDArray[np.float64], targets: NDArray[np.int64]) -> None:
        """Do nothing: the network is trained."""

    def predict_proba(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of both classes, shape [N, 2]."""
        positive = torch.from_numpy(inputs[:, 0]).sigmoid().numpy()
        return np.stack([1 - positive, positive], 1)

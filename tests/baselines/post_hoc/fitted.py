"""Fitted classifiers of scikit-learn on real data, as the outputs of a network."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression


@cache
def rare_digits():
    """Return logits [N, 4] and labels of digits 1, 8, 3 and 9, the later the rarer."""
    inputs, digits = load_digits(return_X_y=True)
    classes = (1, 8, 3, 9)
    places = [np.flatnonzero(digits == digit) for digit in classes]
    kept = [rows[: 160 // 2**k] for k, rows in enumerate(places)]
    targets = np.repeat(np.arange(4), [len(rows) for rows in kept])
    # A few pixels, so that the classes overlap.
    x = inputs[np.concatenate(kept), 18:30]
    classifier = LogisticRegression(C=0.001, max_iter=500).fit(x, targets)
    logits = classifier.decision_function(x)
    return torch.from_numpy(logits), torch.from_numpy(targets)


@cache
def tumours():
    """Return one logit [N, 1], and whether a tumour is benign, by its first feature."""
    inputs, targets = load_breast_cancer(return_X_y=True)
    x = inputs[:, 1:2]
    logits = LogisticRegression().fit(x, targets).decision_function(x)
    return torch.from_numpy(logits)[:, None], torch.from_numpy(targets)

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


@cache
def biased_model():
    """Return a model of whether a digit is above 4, with inputs, labels and groups.

    Groups are thirds of the ink.
    """
    pixels, digits = load_digits(return_X_y=True)
    high, ink = digits > 4, pixels.mean(1)
    groups = np.digitize(ink, np.quantile(ink, [1 / 3, 2 / 3]))
    # High digits with little ink are rare among those the model is fitted to.
    rare = high & (groups == 0) & (np.arange(len(high)) % 8 > 0)
    inputs = np.c_[pixels / 16, groups]
    model = LogisticRegression(C=0.1, max_iter=500).fit(inputs[~rare], high[~rare])
    return model, inputs, high.astype(int), groups


@cache
def high_digits():
    """Return the logit [N, 1] of the biased model, labels and groups."""
    model, inputs, high, groups = biased_model()
    logits = torch.from_numpy(model.decision_function(inputs))[:, None]
    return logits, torch.from_numpy(high), torch.from_numpy(groups)

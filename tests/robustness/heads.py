"""Small networks that return every kind of output, on data that scikit-learn embeds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import scale
from torch import nn

from metricopt import FinetuneOptions, finetune

EXAMPLES = 60
LOADERS = {
    "cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "digits": load_digits,
}
BCE, LOGITS, CE = nn.BCELoss(), nn.BCEWithLogitsLoss(), nn.CrossEntropyLoss()
# Even, prime, above 4, with a loop.
SETS = ((0, 2, 4, 6, 8), (2, 3, 5, 7), (5, 6, 7, 8, 9), (0, 6, 8, 9))


@cache
def arrays(name):
    """Standardised features [60, F] and targets [60] of a data set."""
    inputs, targets = LOADERS[name](return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(inputs))[:EXAMPLES]
    return scale(inputs[chosen]).astype("float32"), targets[chosen]


def vectors(name):
    """The same as tensors: inputs float32, targets int64 or float32."""
    inputs, targets = (torch.tensor(each) for each in arrays(name))
    if name == "digits":
        return inputs, targets
    return inputs, targets.float() / 100 if name == "diabetes" else targets


def several_labels():
    """Digits with four labels each, int64 [60, 4]."""
    inputs, digits = arrays("digits")
    targets = np.stack([np.isin(digits, each) for each in SETS], 1)
    return torch.tensor(inputs), torch.tensor(targets).long()


class Squeezed(nn.Module):
    """Returns [N] for [N, 1]."""

    def forward(self, outputs):
        return outputs.squeeze(-1)


def network(width, outputs, *heads, seed=0):
    """A small network with fixed random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = nn.Linear(width, 6), nn.Tanh(), nn.Linear(6, outputs)
    return nn.Sequential(*layers, *heads)


def flat(returned):
    """Outputs of one number each, as [N] float64."""
    return returned.detach().double().reshape(-1)


def above(bound):
    """Decide for 1 where an output is at least `bound`."""
    return lambda returned: (flat(returned) >= bound).long()


def first_of(returned):
    """The class of the greatest output."""
    return returned.detach().argmax(1)


@dataclass(frozen=True)
class Head:
    """One kind of output, and how a reader of the network's code would read it.

    Attributes:
        outputs: number of outputs.
        layers: what the network ends with.
        loss: torch's own loss for it.
        decided: from outputs to labels.
        scores: from outputs to probabilities, or to predicted values.
        data: name of the data set, or "several" for several labels.
        column: whether torch's loss takes targets [N, 1].
        floating: whether torch's loss takes labels as floats.
    """

    outputs: int
    layers: tuple[nn.Module, ...]
    loss: nn.Module
    decided: Callable[[torch.Tensor], torch.Tensor] | None
    scores: Callable[[torch.Tensor], torch.Tensor]
    data: str = "cancer"
    column: bool = False
    floating: bool = False

    def problem(self):
        """Return a new network, its inputs, and targets as its loss takes them."""
        several = self.data == "several"
        inputs, targets = several_labels() if several else vectors(self.data)
        model = network(inputs.shape[1], self.outputs, *self.layers)
        targets = targets.float() if self.floating else targets
        return model, inputs, targets[:, None] if self.column else targets


def _double(returned):
    return returned.detach().double()


def _shares(returned):
    """Probabilities of all classes, which sum to 1 in double precision."""
    return _double(returned) / _double(returned).sum(1, keepdim=True)


def _second(returned):
    return _double(returned)[:, 1]


SIGMOID, SOFTMAX, FLAT = nn.Sigmoid(), nn.Softmax(1), Squeezed()
LOGARITHMS, NLL, MSE = nn.LogSoftmax(1), nn.NLLLoss(), nn.MSELoss()
LOGIT = (above(0), lambda out: flat(out).sigmoid())
SHARE = (above(0.5), flat)
LOGITS_OF_FOUR = (
    lambda out: (out.detach() >= 0).long(),
    lambda out: _double(out).sigmoid(),
)
SHARES_OF_FOUR = (lambda out: (out.detach() >= 0.5).long(), _double)
HEADS = {
    "one logit": Head(1, (), LOGITS, *LOGIT, column=True, floating=True),
    "flat logit": Head(1, (FLAT,), LOGITS, *LOGIT, floating=True),
    "two logits": Head(2, (), CE, first_of, lambda out: _double(out).softmax(1)[:, 1]),
    "sigmoid": Head(1, (SIGMOID,), BCE, *SHARE, column=True, floating=True),
    "flat sigmoid": Head(1, (SIGMOID, FLAT), BCE, *SHARE, floating=True),
    "softmax of two": Head(2, (SOFTMAX,), CE, first_of, _second),
    "logits": Head(10, (), CE, first_of, lambda out: _double(out).softmax(1), "digits"),
    "softmax": Head(10, (SOFTMAX,), CE, first_of, _shares, "digits"),
    "log-softmax": Head(
        10, (LOGARITHMS,), NLL, first_of, lambda out: _shares(out.exp()), "digits"
    ),
    "several logits": Head(4, (), LOGITS, *LOGITS_OF_FOUR, "several", floating=True),
    "several sigmoids": Head(
        4, (SIGMOID,), BCE, *SHARES_OF_FOUR, "several", floating=True
    ),
    "value": Head(1, (), MSE, None, flat, "diabetes", True, True),
    "flat value": Head(1, (FLAT,), MSE, None, flat, "diabetes", floating=True),
}


def run(model, data, loss, metric, **settings):
    """Fine-tune on the same data as it is observed on, quickly."""
    quick = {"method": "cma-es", "queries": 12, "no_harm": False}
    options = FinetuneOptions(**(quick | settings))
    return finetune(
        model, train=data, observe=data, loss=loss, metric=metric, options=options
    )

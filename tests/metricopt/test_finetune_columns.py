"""Metrics of groups are improved on other data: of several classes, and of values."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn

from metricopt import finetune
from tests.metricopt.digits_network import pretrained, splits

SETTINGS = {"queries": 25, "progress": False}


def thickness(split):
    """Whether digits have more ink than half of all."""
    ink = split[0].mean((1, 2, 3))
    return np.where(ink > ink.median(), "bold", "thin")


def worst_group(outputs, targets, group):
    hit = (outputs.argmax(1) == targets).numpy()
    return min(hit[group == each].mean() for each in ("bold", "thin"))


def test_the_accuracy_of_the_worst_group_of_digits_rises_on_other_data():
    train, observe, test = splits()
    model = pretrained()
    found = finetune(
        model,
        train=train,
        observe=(*observe, {"group": thickness(observe)}),
        loss=nn.CrossEntropyLoss(),
        metric=worst_group,
        higher_is_better=True,
        **SETTINGS,
    )
    assert "decisions by 'group'" in found.evidence.reason
    assert found.evidence.identified <= 12
    with torch.no_grad():
        before = worst_group(model(test[0]), test[1], thickness(test))
        after = worst_group(found.apply()(test[0]), test[1], thickness(test))
    assert after > before + 0.05


def test_the_error_of_values_in_the_worst_group_is_a_function_of_residuals():
    inputs, values = load_diabetes(return_X_y=True)
    sex = np.where(inputs[:, 1] > 0, "a", "b")
    inputs = torch.tensor(inputs * 20).float()
    values = torch.tensor(values / 100).float()[:, None]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Linear(10, 1)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(30):  # not enough: values are too low
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs[:150]), values[:150]).backward()
        optimizer.step()

    def worst_error(outputs, targets, sex):
        errors = (outputs - targets).abs().numpy()[:, 0]
        return max(errors[sex == each].mean() for each in "ab")

    found = finetune(
        model,
        train=(inputs[:150], values[:150]),
        observe=(inputs[150:], values[150:], {"sex": sex[150:]}),
        loss=nn.MSELoss(),
        metric=worst_error,
        higher_is_better=False,
        **SETTINGS,
    )
    assert "as a function of the residuals" in found.evidence.reason
    assert found.evidence.identified is not None
    assert found.metric_after < found.metric_before

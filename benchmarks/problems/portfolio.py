"""The portfolio of the suite: the library's losses, and every registered baseline's."""

import torch

from baselines.losses.contract import LOSSES, make_loss
from metricopt.errors import MetricOptError
from metricopt.losses.contract import Loss, check_batch_size, properties
from metricopt.losses.portfolio import LossFacts, Portfolio, make_portfolio

SAME = ("cross-entropy", "pairwise-aucroc")
"""Losses that the library's portfolio has."""
TRIED = 8
"""Examples a loss is tried on."""


def suite_portfolio(facts: LossFacts) -> Portfolio:
    """Return the losses of the library, and all of `LOSSES` that suit the outputs."""
    found = make_portfolio(facts)
    for name in LOSSES:
        if name not in SAME:
            loss = _suited(name, facts)
            if loss is not None:
                found[name] = loss
    return found


def _suited(name: str, facts: LossFacts) -> Loss | None:
    """Return a loss if it takes these outputs, None if not."""
    if properties(LOSSES.get(name)).outputs_per_class != 1:
        return None
    outputs = torch.linspace(-1, 1, TRIED * facts.outputs).view(TRIED, -1)
    targets = torch.arange(TRIED) % max(facts.outputs, 2)
    try:
        loss = make_loss(name, classes=facts.outputs)
        check_batch_size(loss, facts.batch_size, facts.outputs)
        value = loss(outputs, targets)
    except MetricOptError:
        return None
    return loss if bool(torch.isfinite(value)) else None

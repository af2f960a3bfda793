"""The registry of surrogate losses, and how one is made."""

import inspect
from typing import Any, cast

from metricopt.errors import ConfigError
from metricopt.losses.contract import Loss, RowLoss, loss_class
from metricopt.registry import Registry

LOSSES: Registry[Loss | type[RowLoss]] = Registry("loss", "baselines.losses")
"""Registered functions are losses; `make_loss` makes a loss of a registered class."""


def make_loss(name: str, *, classes: int, **settings: Any) -> Loss:
    """Return the registered loss called `name`.

    Args:
        name: a name in `LOSSES`.
        classes: number of classes C; 1 is one logit of the positive class.
        **settings: keyword arguments of a loss that is a class.

    Raises:
        ConfigError: if there is no such loss, or it does not know a setting.
    """
    unit = LOSSES.get(name)
    kind = loss_class(unit)
    known = [] if kind is None else list(inspect.signature(kind).parameters)[1:]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise ConfigError(
            f"loss {name!r} has no setting {', '.join(unknown)}; "
            f"known: {', '.join(known) or 'none'}"
        )
    return cast(Loss, unit) if kind is None else kind(classes=classes, **settings)

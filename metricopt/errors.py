"""Every error the project raises on purpose; all derive from `MetricOptError`."""

import os
from typing import Any, Protocol, get_args

from torch import Tensor, nn


class Partial(Protocol):
    """The best result so far, attached to an error that ends `finetune`.

    It is the attribute `partial` of the exception, whatever the exception is: one of
    these errors, one from the user's loss, metric, data or model, or an interrupt. It
    is None if nothing had been measured yet.
    """

    @property
    def phi(self) -> Tensor:
        """Best adapter parameters observed, shape [d]."""

    @property
    def metric_before(self) -> float:
        """Metric of the untouched network, native units."""

    @property
    def metric_after(self) -> float:
        """Metric of phi, native units."""

    def apply(self) -> nn.Module:
        """Modulate the network by phi in place, and return it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write phi to a file."""

    def summary(self) -> str:
        """Return a few plain lines: what was gained, and what was spent for it."""


class MetricOptError(Exception):
    """Base class: catch this to catch every error raised on purpose.

    Attributes:
        partial: the best result of `finetune` when it failed; None anywhere else.
    """

    partial: Partial | None = None


class ConfigError(MetricOptError, ValueError):
    """A setting, name or argument is not one of those accepted."""


class ShapeError(MetricOptError, ValueError):
    """A tensor has another shape than expected; the message names both."""


class MetricError(MetricOptError):
    """A metric raised an exception, or returned no number in its range."""


class BudgetExceededError(MetricOptError):
    """A method asked for more metric queries than its budget allows."""


class DivergedError(MetricOptError):
    """A loss became non-finite; what was measured before is kept."""


class DataError(MetricOptError):
    """A data set is missing, incomplete, or not the one expected."""


def require_choice(name: str, value: object, kind: Any) -> None:
    """Check that a setting is one of the values of a `Literal`.

    Args:
        name: of the setting.
        value: what it was set to.
        kind: the `Literal`.

    Raises:
        ConfigError: if it is not; the message lists the values.
    """
    known = get_args(kind)
    if value not in known:
        options = ", ".join(map(repr, known))
        raise ConfigError(f"{name} must be one of {options}, got {value!r}")

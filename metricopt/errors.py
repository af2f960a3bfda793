"""Every error the project raises on purpose; all derive from `MetricOptError`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metricopt.finetuned import Finetuned


class MetricOptError(Exception):
    """Base class: catch this to catch every error raised on purpose.

    Attributes:
        partial: the best `finetune` had found when it failed; None anywhere else.
    """

    partial: "Finetuned | None" = None


class ConfigError(MetricOptError, ValueError):
    """A setting, name or argument is not one of those accepted."""


class ShapeError(MetricOptError, ValueError):
    """A tensor has another shape than expected; the message names both."""


class MetricError(MetricOptError):
    """A metric raised, or returned something that is no value in its range."""


class BudgetExceededError(MetricOptError):
    """A method asked for more metric queries than its budget allows."""


class DivergedError(MetricOptError):
    """A loss became non-finite; what was measured before is kept."""


class DataError(MetricOptError):
    """A data set is missing, incomplete, or not the one expected."""

"""Every error the project raises on purpose; all derive from `MetricOptError`."""

import difflib
import operator
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any, Protocol, get_args

from torch import Tensor, nn

SHORT = 60
"""Longest text of a value that a message shows as it is."""


class Partial(Protocol):
    """The best result so far, attached to an error that ends `finetune`.

    It is the attribute `partial` of the exception, whatever the exception is: one of
    these errors, one from the user's loss, metric, data or model, or an interrupt. It
    is None if nothing had been measured yet, and a `Tuned` after `tune`.
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
        partial: the best result of `finetune` or `tune` when it failed; None anywhere
            else.
    """

    partial: Partial | None = None


class ConfigError(MetricOptError, ValueError):
    """A setting, name or argument is not one of those accepted."""


class LossError(ConfigError):
    """A loss raised at its first call, or returned no finite scalar with a gradient."""


class ShapeError(MetricOptError, ValueError):
    """A tensor has another shape than expected; the message names both."""


class MetricError(MetricOptError):
    """A metric raised an exception, or returned no number in its range."""


class RangeError(MetricError):
    """A metric returned a number beyond the range that was promised for it."""


class BudgetExceededError(MetricOptError):
    """A method asked for more metric queries than its budget allows."""


class DivergedError(MetricOptError):
    """A loss became non-finite; what was measured before is kept."""


class DataError(MetricOptError):
    """A data set is missing, incomplete, or not the one expected."""


def require_choice(name: str, value: object, kind: Any) -> None:
    """Raise ConfigError, with the values of a `Literal`, unless a setting is one."""
    known = get_args(kind)
    if value not in known:
        options = ", ".join(map(repr, known))
        raise ConfigError(f"{name} must be one of {options}, got {value!r}")


def require_kind(name: str, value: object, kind: Any, expected: str) -> None:
    """Check that an argument is an object of a class, or of a union of some.

    Raises:
        ConfigError: if it is not; the message has the kind in words, `expected`. Where
            the class was passed instead of an object, the message says so.
    """
    if isinstance(value, kind):
        return
    got = described(value)
    if isinstance(value, type) and issubclass(value, kind):
        got += f": pass {value.__name__}(...)"
    raise ConfigError(f"{name} must be {expected}, got {got}")


def require_given(owner: str, settings: Mapping[str, Any], *optional: str) -> None:
    """Raise ConfigError if one of the settings is None, but for those optional."""
    for name, value in settings.items():
        if value is None and name not in optional:
            raise ConfigError(f"{owner} needs {name}, got None")


def require_whole(name: str, value: object) -> int:
    """Return a whole number, numpy's too; raise ConfigError for others, and bools."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise ConfigError(f"{name} must be a whole number, got {described(value)}")


def require_ranges(owner: str, settings: Mapping[str, Any], **ranges: str) -> None:
    """Check that numbers are in their ranges.

    Args:
        owner: what is set, for the message.
        settings: the numbers by name, among others; None passes.
        **ranges: by name: ">= 1", "> 0", or an interval as in "in [0, 1)".

    Raises:
        ConfigError: if a number is outside, NaN, or text; the message names both.
    """
    for name, expected in ranges.items():
        value = settings[name]
        if isinstance(value, str) or not (value is None or _is_within(value, expected)):
            said = repr(value) if isinstance(value, str) else value
            raise ConfigError(f"{owner} needs {name} {expected}, got {name}={said}")


def require_counts(owner: str, settings: Mapping[str, Any], *names: str) -> None:
    """Check numbers that count something: whole, numpy's too, and at least 1.

    Args:
        owner: what is set, for the message.
        settings: the numbers by name, among others; None passes.
        *names: of those to check.

    Raises:
        ConfigError: if one is not whole, or below 1.
    """
    for name in names:
        if settings[name] is not None:
            require_whole(name, settings[name])
    require_ranges(owner, settings, **dict.fromkeys(names, ">= 1"))


def _is_within(value: float, expected: str) -> bool:
    kind, _, rest = expected.partition(" ")
    if kind != "in":
        return value >= float(rest) if kind == ">=" else value > float(rest)
    low, high = map(float, rest[1:-1].split(", "))
    above = value >= low if rest.startswith("[") else value > low
    return above and (value <= high if rest.endswith("]") else value < high)


def unknown_name(
    kind: str, name: str, known: Iterable[str], *, others: Iterable[str] = ()
) -> ConfigError:
    """Return the error of a name that is not known; it says which are near.

    Others are known, too, but too many to be listed.
    """
    names = list(known)
    spelled = {_spelled(each): each for each in [*others, *names]}
    close = difflib.get_close_matches(_spelled(name), spelled, n=3)
    near = [spelled[each] for each in close]
    text = f"unknown {kind} {name!r}; known: {', '.join(names) or 'none'}"
    meant = " or ".join(map(repr, near))
    return ConfigError(f"{text}; did you mean {meant}?" if near else text)


def _spelled(name: str) -> str:
    return name.lower().replace("_", "-")


def described(value: object) -> str:
    """Return what a value is in a few words, for a message."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, FunctionType):
        return f"the function {value.__name__}"
    text = repr(value)
    if len(text) <= SHORT and "\n" not in text:
        return text
    kind = type(value).__name__
    if not isinstance(value, tuple | list):
        return f"a {kind}"
    parts = ", ".join(type(part).__name__ for part in value[:4])
    more = ", ..." if len(value) > 4 else ""
    return f"a {kind} of {len(value)}: {parts}{more}"


def said(error: BaseException) -> str:
    """Return the class and the text of an error, which may be of any class."""
    text = ""
    with suppress(Exception):  # the text is made by code of the user's
        text = f": {error}"
    return type(error).__name__ + text

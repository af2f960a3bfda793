"""Whether what JSON holds is of the types that a record has."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.runs.codec import canonical

Check = Callable[[Any], bool]


def check_types(content: Mapping[str, Any]) -> None:
    """Check the fields of a record as JSON holds it.

    A number of another type would come to light in the middle of a table.

    Args:
        content: of the current schema, with all its fields.

    Raises:
        TypeError: if a field is of another type; the message names it.
        ValueError: if a number or a text is none that JSON should hold: 1e999 is read
            as infinite, and half a surrogate pair cannot be written.
    """
    canonical(content).encode()
    _check("a record", FIELDS, content)
    if not isinstance(content["spec"].get("digest"), str):
        raise TypeError("a record must have the digest of its spec")
    for point in content["trace"]:
        _check("a trace point", POINT, point)


def _check(what: str, fields: Mapping[str, Check], content: Mapping[str, Any]) -> None:
    for name, fits in fields.items():
        if not fits(content[name]):
            raise TypeError(f"{name!r} of {what} is of a wrong type")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_number(value: Any) -> bool:
    # Of whole numbers, some are too large for a float.
    return type(value) is float or (type(value) is int and abs(value) < 1 << 63)


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _named(fits: Check) -> Check:
    return lambda value: _is_object(value) and all(map(fits, value.values()))


def _each(fits: Check) -> Check:
    return lambda value: _is_list(value) and all(map(fits, value))


_is_values = _named(_each(lambda value: value is None or _is_number(value)))

FIELDS: Mapping[str, Check] = {
    "spec": _is_object,
    "status": _is_text,
    "message": _is_text,
    "data": _named(_is_text),
    "environment": _is_object,
    "seeds": _named(_is_whole),
    "queries": _is_count,
    "shared_queries": _is_count,
    "queried": _named(_is_count),
    "gradient_steps": _is_count,
    "seconds": _named(_is_number),
    "trace": _each(_is_object),
    "observe": _is_values,
    "test": _is_values,
    "notes": _is_object,
}
"""Type of every field of a record."""
POINT: Mapping[str, Check] = {
    "step": _is_count,
    "queries": _is_count,
    "observe": _is_values,
    "test": _is_values,
}
"""Type of every field of a trace point."""

"""Typed settings to JSON and back, and digests of JSON values.

Nothing else reads settings by their keys.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, is_dataclass, replace
from functools import cache
from typing import Any, NewType, TypeVar

from cattrs import Converter
from cattrs.errors import BaseValidationError
from cattrs.v import format_exception, transform_error

from metricopt.errors import ConfigError

T = TypeVar("T")
Count = NewType("Count", int)
"""A whole number of at least 0, for fields of records."""
LARGEST = 1 << 63
"""Bound of whole numbers that stand for a count or a float."""
REASONS = 3
"""Wrong fields that an error names."""
SHORT = 12
"""Characters that a page shows of a digest."""
LATER = "later"
"""Key in the metadata of a dataclass field that was added later."""


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN.

    Raises:
        ConfigError: if the value holds what JSON cannot, non-finite numbers included.
    """
    try:
        return json.dumps(
            value,
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
            ensure_ascii=False,
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(f"expected values that JSON can hold: {error}") from error


def digest_of(content: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, 64 hex digits.

    Raises:
        ConfigError: as `canonical`, and if a text cannot be encoded.
    """
    text = canonical(content)
    try:
        return hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise ConfigError(f"expected texts that UTF-8 can hold: {error}") from error


def content_digest(content: object) -> str:
    """Return the first 128 bits of `digest_of`."""
    return digest_of(content)[:32]


def joint_digest(digests: Iterable[str]) -> str:
    """Return one short digest of several, which may come in any order."""
    return content_digest(sorted(digests))[:SHORT]


def later(default: T) -> T:
    """Return a dataclass field that was added later.

    It is left out of the JSON at its default, so what was written before such a field
    keeps its identity.
    """
    found: T = field(default=default, metadata={LATER: True})
    return found


def encode(settings: object) -> Any:
    """Return a dataclass as plain JSON values, with nested ones and tuples."""
    return json.loads(canonical(_plain(settings)))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {
            each.name: _plain(getattr(value, each.name))
            for each in fields(value)
            if not (
                LATER in each.metadata and getattr(value, each.name) == each.default
            )
        }
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return (
        [_plain(part) for part in value] if isinstance(value, tuple | list) else value
    )


def decode(kind: type[T], content: object) -> T:
    """Return the dataclass that `encode` made this content from.

    Raises:
        ConfigError: if a field is missing or unknown, or a value of another type or out
            of its range; the message names the class, and the field or the reason.
    """
    try:
        return _converter().structure(content, kind)
    except BaseValidationError as error:
        reasons = "; ".join(transform_error(error, format_exception=_reason)[:REASONS])
        raise ConfigError(f"invalid settings for {kind.__name__}: {reasons}") from error


def _reason(error: BaseException, kind: type[Any] | None) -> str:
    """Return why a value was refused; a dataclass of ours says it best itself."""
    return (
        str(error) if isinstance(error, ConfigError) else format_exception(error, kind)
    )


def changed(settings: T, changes: Mapping[str, Any]) -> T:
    """Return a dataclass with some fields changed, nested ones field by field.

    Args:
        settings: the dataclass.
        changes: new values by name, as JSON holds them; a mapping changes a nested
            dataclass, a list becomes a tuple.

    Raises:
        ConfigError: if there is no such field; the message lists the known ones.
    """
    if not changes:
        return settings
    known = [field.name for field in fields(settings)] if is_dataclass(settings) else []
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise ConfigError(
            f"{type(settings).__name__} has no setting {', '.join(unknown)}; "
            f"known: {', '.join(known) or 'none'}"
        )
    values = {
        name: _changed_value(getattr(settings, name), value)
        for name, value in changes.items()
    }
    return replace(settings, **values)  # type: ignore[type-var]


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return encoded settings with changes, nested ones key by key."""
    found = dict(settings)
    for name, value in changes.items():
        nested = isinstance(value, Mapping)
        found[name] = merged(found.get(name, {}), value) if nested else value
    return found


def _changed_value(before: Any, value: Any) -> Any:
    if isinstance(value, Mapping) and is_dataclass(before):
        return changed(before, value)
    return tuple(value) if isinstance(value, list) else value


@cache
def _converter() -> Converter:
    # Made once: it compiles a reader for every class it meets.
    converter = Converter(forbid_extra_keys=True)
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _exactly)
    converter.register_structure_hook(Count, _count)
    return converter


def _exactly(value: Any, kind: type[T]) -> T:
    """Return a value of a plain type; cattrs would read the text "1" as a number."""
    if type(value) is kind:
        return value
    if kind is float and type(value) is int and abs(value) < LARGEST:
        return kind(value)
    raise TypeError(f"expected {kind.__name__}")


def _count(value: Any, _: type) -> int:
    if type(value) is not int or not 0 <= value < LARGEST:
        raise TypeError("expected a count")
    return value

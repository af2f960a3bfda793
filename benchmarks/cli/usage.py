"""Errors of the command line, with the nearest name for a misspelt one."""

import difflib
from collections.abc import Sequence


class UsageError(Exception):
    """The command line is wrong; the message is one sentence for the user.

    It is no `MetricOptError`, because importing metricopt takes seconds.
    """


def check_name(kind: str, name: str, known: Sequence[str], hint: str = "") -> str:
    """Return a name if it is known.

    Args:
        kind: what has this name, such as `experiment`.
        name: what the user typed.
        known: all valid names.
        hint: where to find the names; without it the message lists them.

    Raises:
        UsageError: if the name is unknown; the message suggests the nearest name.
    """
    if name in known:
        return name
    near = difflib.get_close_matches(name.lower(), known, n=1)
    suggestion = f"did you mean {near[0]!r}? " if near else ""
    names = hint or f"known: {', '.join(known)}"
    raise UsageError(f"unknown {kind} {name!r}; {suggestion}{names}")


def at_least_one(option: str, text: str) -> int:
    """Return the whole number that an option was given.

    Raises:
        UsageError: if the text is no whole number, or the number is less than 1.
    """
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{option} must be a whole number of at least 1, got {text!r}")
    return int(text)

"""One sentence for many things that are wrong: how many, and the first of them."""

from collections.abc import Sequence

from metricopt.errors import DataError

NAMED = 3
"""Things that an error names before it counts."""


def refuse(label: str, what: str, wrong: Sequence[object]) -> None:
    """Raise a DataError that counts and names what is wrong, if anything is."""
    if wrong:
        more = ", ..." if len(wrong) > NAMED else ""
        named = ", ".join(shown(str(each)) for each in wrong[:NAMED])
        raise DataError(
            f"{label} has {len(wrong)} {what} ({named}{more}), expected none"
        )


def shown(name: str) -> str:
    """Return a name in one line of text, whatever bytes it has."""
    return name if name.isprintable() else ascii(name)


def told(error: Exception) -> str:
    """Return what an exception says, in one line; its kind if it says nothing."""
    return shown(" ".join(str(error).split())) or type(error).__name__

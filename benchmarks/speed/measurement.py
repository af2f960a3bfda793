"""One line of a table of timings."""

from collections.abc import Sequence
from dataclasses import dataclass

from tabulate import tabulate


@dataclass(frozen=True)
class Measurement:
    """One line of the table.

    Attributes:
        what: what was measured.
        found: the value, with its unit.
        target: what it should be; empty if nothing was promised.
        met: whether it is; None without a target.
    """

    what: str
    found: str
    target: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, str, str, str]:
        """Return the texts of the table's line."""
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        return self.what, self.found, self.target, verdict


def as_table(lines: Sequence[Measurement]) -> str:
    """Return measurements as a table for the terminal."""
    headings = ("what", "measured", "target", "")
    rows = [line.cells() for line in lines]
    return tabulate(rows, headings, tablefmt="plain", disable_numparse=True)

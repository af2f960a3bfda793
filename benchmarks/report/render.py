"""Tables to text: Markdown, CSV and LaTeX."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate

if TYPE_CHECKING:
    from pandas import DataFrame

NUMBER = re.compile(r"[-+\d,.]+")
LATEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "·": r"$\cdot$",
    "<": r"$<$",
    ">": r"$>$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def text_table(lines: Sequence[Sequence[str]], names: Sequence[str]) -> "DataFrame":
    """Return lines of text cells as a table."""
    import pandas

    return pandas.DataFrame(lines, columns=list(names), dtype="object")


def count_range(counts: Sequence[int]) -> str:
    """Return `low-high`, or one number if all are the same."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def section(
    heading: str, legend: str, lines: Sequence[Sequence[str]], names: Sequence[str]
) -> list[str]:
    """Return a section of a page with one table, as Markdown; empty without a line."""
    return [heading, legend, to_markdown(text_table(lines, names))] if lines else []


def to_markdown(table: "DataFrame") -> str:
    """Return a table as Markdown, aligned so that a terminal shows it well."""
    aligned = _alignment(table.iloc[:, place] for place in range(len(table.columns)))
    return str(table.to_markdown(index=False, disable_numparse=True, colalign=aligned))


def to_csv(table: "DataFrame") -> str:
    """Return a table as CSV, numbers with ten significant digits."""
    return str(table.to_csv(index=False, float_format="%.10g", lineterminator="\n"))


def to_latex(table: "DataFrame", *, caption: str) -> str:
    """Return a table as a LaTeX `table` with booktabs rules.

    Args:
        table: text cells.
        caption: printed below the table, plain text.
    """
    escaped = table.map(latex_text).rename(columns=latex_text)
    style = f"l{'r' * (len(table.columns) - 1)}"
    rows = escaped.to_latex(index=False, escape=False, column_format=style)
    lines = [
        r"\begin{table}",
        r"\centering",
        rows.rstrip(),
        rf"\caption{{{latex_text(caption)}}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def latex_text(text: str) -> str:
    """Return plain text with everything LaTeX would act on escaped."""
    pattern = "|".join(re.escape(sign) for sign in LATEX)
    return re.sub(pattern, lambda match: LATEX[match[0]], text)


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text for a terminal, numbers to the right.

    Args:
        rows: the header first, all of one length.
    """
    header, *body = rows
    text = tabulate(
        body,
        headers=header,
        tablefmt="plain",
        disable_numparse=True,
        colalign=_alignment(zip(*body, strict=True)) if body else None,
        preserve_whitespace=True,
    )
    return "\n".join(line.rstrip() for line in text.splitlines())


def _alignment(columns: Iterable[Iterable[object]]) -> list[str]:
    """Return `right` for columns of numbers, `left` for others."""
    numeric = (all(NUMBER.fullmatch(str(cell)) for cell in own) for own in columns)
    return ["right" if right else "left" for right in numeric]

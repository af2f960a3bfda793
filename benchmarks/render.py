"""Tables to text: Markdown, CSV and LaTeX."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

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


def to_markdown(table: "DataFrame") -> str:
    """Return a table as Markdown, aligned so that a terminal shows it well."""
    columns = (table.iloc[:, place] for place in range(len(table.columns)))
    numeric = (
        all(NUMBER.fullmatch(str(cell)) for cell in column) for column in columns
    )
    aligned = ["right" if right else "left" for right in numeric]
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
    lines = [[*table.columns], *table.itertuples(index=False)]
    head, *body = (
        f"{' & '.join(latex_text(str(item)) for item in line)} \\\\" for line in lines
    )
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{latex_text(caption)}}}",
            r"\end{table}",
            "",
        ]
    )


def latex_text(text: str) -> str:
    """Return plain text with everything LaTeX would act on escaped."""
    pattern = "|".join(re.escape(sign) for sign in LATEX)
    return re.sub(pattern, lambda match: LATEX[match[0]], text)


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text, columns as wide as their widest cell, numbers to the right.

    Args:
        rows: the header first, all of one length.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(NUMBER.fullmatch(cell) for cell in column[1:]) for column in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    )

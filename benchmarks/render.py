"""Tables to text: Markdown, CSV and LaTeX."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

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
    aligned = ["left", *["right"] * (len(table.columns) - 1)]
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

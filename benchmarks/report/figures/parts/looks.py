"""Colour, dash and marker of every arm: told apart by everyone, in any number."""

from itertools import count

from benchmarks.report.layout import TableLayout

# Okabe and Ito's palette: told apart with every common colour vision deficiency.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999999",
)
FORMS = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))
"""Dash and marker, in the order in which arms get them."""
FIXED_ARMS = (
    "metricopt",
    "cma-es",
    "guided-cma",
    "metricopt-literal",
    "random-search",
    "metricopt-adam",
    "loss-only-dense",
    "loss-only",
    "metricopt-outputs",
)
"""Arms that look the same in the figures of every experiment; append, never insert."""

Dash = str | tuple[int, tuple[int, ...]]
Marker = str | tuple[int, int, int]
Style = tuple[str, Dash, Marker]
"""Colour, dash and marker of an arm."""


def arm_styles(layout: TableLayout) -> dict[str, Style]:
    """Return the look of each row and arm by label, the same in every figure."""
    named = {label: name for name, label in layout.arms.items()}
    named |= {row.label: row.name for row in layout.rows}
    fixed = {
        name: look(FIXED_ARMS.index(name))
        for name in named.values()
        if name in FIXED_ARMS
    }
    taken = set(fixed.values())
    free = (found for found in map(look, count()) if found not in taken)
    return {label: fixed.get(name) or next(free) for label, name in named.items()}


def look(number: int) -> Style:
    """Return the look of that number, from 0; no two are the same."""
    form, colour = divmod(number, len(COLOURS))
    if form < len(FORMS):
        return COLOURS[colour], *FORMS[form]
    # A dash of its own length and a star with its own number of points.
    return COLOURS[colour], (0, (form, 2, 1, 2)), (form, 1, 0)

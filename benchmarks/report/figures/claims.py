"""What searches claimed: calibration of their intervals, and claimed against true."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.report.cells import judge
from benchmarks.report.figures.panels import (
    ALL_BLOCKS,
    COLOURS,
    FORMS,
    finish,
    make_free_panels,
)
from benchmarks.report.layout import TableLayout
from benchmarks.report.sections.claims import (
    LEVEL,
    Call,
    calls_by_group,
    claims_among,
    half_width,
    share_held,
)
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVELS = tuple(percent / 100 for percent in range(50, 100))
"""Nominal levels of the intervals; in percent, those that the axis names:"""
TICKS = (50, 60, 70, 80, 90, 95, 99)
BAND = 0.95
"""Probability of the band around the diagonal."""
HELD, MISSED = "share that holds the true gain", "interval misses the true gain"
BANDED = "95 % of such shares, if intervals\nare right and calls independent"
EQUAL = {"color": "0.4", "linewidth": 0.8, "linestyle": "--"}
"""Look of the diagonal, where both axes say the same."""


def claims(layout: TableLayout, records: Sequence[RunRecord]) -> "Figure | None":
    """Draw the claims of a row, two panels; see `what_was_claimed`.

    Left: the nominal level of an interval against the share of claims whose interval of
    that level holds the true gain. Right: the gain claimed against the true gain, one
    mark per claim.
    """
    groups = calls_by_group(layout, judge(layout, records))
    found = {label: claims_among(calls) for label, calls in groups.items()}
    every = [claim for own in found.values() for claim in own]
    if not every:
        return None
    figure, (left, right) = make_free_panels(2)
    _calibration(left, every)
    unit = "" if layout.observed_of is None else " to observe"
    _claimed_over_true(right, {f"{label}{unit}": own for label, own in found.items()})
    what = (
        f"gains that {_label(layout)} claims for other data, against its gains on test;"
        f" {len(every)} claims of adopted calls, as shares of the metric's range"
    )
    return finish(figure, layout, ALL_BLOCKS, what)


def _label(layout: TableLayout) -> str:
    return next(row.label for row in layout.rows if row.name == layout.claims_row)


def _calibration(panel: "Axes", every: Sequence[Call]) -> None:
    from scipy.stats import binom

    low, high = binom.interval(BAND, len(every), LEVELS)
    percent = [100 * level for level in LEVELS]
    ends = (100 * low / len(every), 100 * high / len(every))
    panel.fill_between(percent, *ends, color="0.85", linewidth=0, label=BANDED)
    panel.plot(percent, percent, **EQUAL)
    shares = [100 * share_held(every, level) for level in LEVELS]
    panel.plot(percent, shares, color=COLOURS[0], linewidth=1.8, label=HELD)
    panel.set_xticks(TICKS)
    panel.set_xlabel("nominal level of the interval, %")
    panel.set_ylabel("claims whose interval holds the true gain, %")


def _claimed_over_true(panel: "Axes", found: Mapping[str, Sequence[Call]]) -> None:
    wide, missed = half_width(LEVEL), []
    for number, (label, own) in enumerate(found.items()):
        if own:
            colour, (_, marker) = COLOURS[number % len(COLOURS)], FORMS[number % 4]
            panel.errorbar(
                [claim.true for claim in own],
                [claim.claimed for claim in own],
                [wide * (claim.error or 0.0) for claim in own],
                label=label,
                color=colour,
                linestyle="none",
                marker=marker,
                markersize=3.5,
                markeredgewidth=0,
                ecolor=(colour, 0.3),
                elinewidth=0.8,
            )
            missed += [claim for claim in own if claim.surprise > wide]
    if missed:
        ends = [claim.true for claim in missed], [claim.claimed for claim in missed]
        ring = {"marker": "o", "markersize": 7, "markerfacecolor": "none"}
        panel.plot(*ends, linestyle="none", color="0.2", label=MISSED, **ring)
    panel.axline((0, 0), slope=1, zorder=3, **EQUAL)
    panel.set_xlabel("true gain, on test")
    panel.set_ylabel("claimed gain, with its interval of 95 %")

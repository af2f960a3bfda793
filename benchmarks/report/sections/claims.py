"""The section on claims: the gain that a search expects, and the gain on test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from benchmarks.report import stats
from benchmarks.report.cells import Cell, note_value
from benchmarks.report.columns import NOTHING, Reading, signed
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section

CLAIMED = "## What was claimed"
KEPT, EXPECTED = "untouched", ("expected_gain", "expected_gain_error")
"""Notes of a search: whether it kept the network, and what it claims: a decrease of the
cost in [0, 1], and its standard error."""
LEVEL = 1 - stats.LEVEL
"""Level of the interval that a result prints."""
LOSS = 0.001
"""A greater loss on test counts as one, as a share of the metric's range."""
NO_GAIN = "no gain"
LEGEND = (
    "A call is one search on one network. It is adopted if it moves phi, and most "
    "adopted calls claim a gain on other data, with an interval of 95 %. The true gain "
    "is the gain on the test split over the untouched network of the same replicate. "
    "It has a sampling error of its own, which the interval does not include. Gains "
    "are shares of the range of the metric, so that metrics can be averaged. "
    "`claims`: adopted calls with a claim, which the next four columns are about. "
    "`interval holds`: share of them whose interval holds the true gain. `claimed` and "
    "`true`: mean gains. `bias`: the difference of these means, as a share of the true "
    f"gain; `{NO_GAIN}` if the mean true gain is not above 0. `lost`: calls, with a "
    f"claim or not, that lose more than {LOSS:g} on test. `worst`: the least true gain "
    "of all calls; below 0 is a loss. Calls for several metrics on one network are not "
    "independent of each other."
)
NAMES = ("calls", "adopted", "claims", "interval holds", "claimed", "true", "bias")
NAMES += ("lost", "worst")


@dataclass(frozen=True)
class Call:
    """What one search promised and what came of it.

    Gains are decreases of the cost, as shares of the metric's range.

    Attributes:
        group: label of its block, or the size of its observe split.
        true: the gain on test over the untouched network.
        is_adopted: whether it moved phi.
        claimed: the gain it expects on other data; None if it claims nothing.
        error: standard error of that, by the search; None if it claims nothing.
    """

    group: str
    true: float
    is_adopted: bool
    claimed: float | None = None
    error: float | None = None

    @property
    def surprise(self) -> float:
        """How far the true gain is from the one claimed, in standard errors, >= 0."""
        assert self.claimed is not None and self.error is not None
        off = abs(self.true - self.claimed)
        if off <= stats.ROUNDING:
            return 0.0
        return off / self.error if self.error else float("inf")


def half_width(level: float) -> float:
    """Return standard errors to either side of a claim, 1.96 at a level of .95.

    Intervals are those of a normal distribution, as the library prints them.
    """
    return NormalDist().inv_cdf((1 + level) / 2)


def share_held(claims: Sequence[Call], level: float) -> float:
    """Return the share of one or more claims whose interval holds the true gain."""
    most = half_width(level)
    return sum(claim.surprise <= most for claim in claims) / len(claims)


def calls_by_group(layout: TableLayout, cells: Sequence[Cell]) -> dict[str, list[Call]]:
    """Return the calls of the row whose claims are judged, by size or block, in order.

    Runs of several searches are left out: what they note is a mean over these.
    """
    places = {(c.block.name, c.row.name, c.column.name): c for c in cells}
    found: dict[tuple[int, str], list[Call]] = {}
    for cell in cells:
        if cell.row.name != layout.claims_row:
            continue
        if not Reading(cell.column).is_aim_of(cell.records):
            continue
        place = (cell.block.name, layout.untouched_row or "", cell.column.name)
        if place in places:
            key = _group(layout, cell)
            found.setdefault(key, []).extend(_calls(key[1], cell, places[place]))
    return {label: found[order, label] for order, label in sorted(found)}


def claims_among(calls: Sequence[Call]) -> list[Call]:
    """Return the adopted calls that claim a gain."""
    return [call for call in calls if call.is_adopted and call.claimed is not None]


def what_was_claimed(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the section with a line per size or block and one for all of them.

    Empty if the layout does not ask for it, or there is no call.
    """
    groups = {label: own for label, own in calls_by_group(layout, cells).items() if own}
    lines = [[label, *_words(own)] for label, own in groups.items()]
    if len(lines) > 1:
        every = [call for own in groups.values() for call in own]
        lines.append(["all", *_words(every)])
    first = "block" if layout.observed_of is None else "size"
    return section(CLAIMED, LEGEND, lines, [first, *NAMES])


def _group(layout: TableLayout, cell: Cell) -> tuple[int, str]:
    """Return where the line of a cell stands, and its label."""
    if layout.observed_of is None:
        return layout.blocks.index(cell.block), cell.block.label
    size = layout.observed_of(cell.records[0].spec)
    return size, f"{size:,}"


def _calls(group: str, cell: Cell, untouched: Cell) -> Iterator[Call]:
    """Yield the finished calls of a cell whose untouched network was judged, too."""
    reading = Reading(cell.column)
    before = {r.spec.replicate: reading.finals(r) for r in untouched.finished}
    for record in cell.finished:
        spec, kept = record.spec, note_value(record, KEPT)
        is_one = spec.meta_tests == spec.value_functions == 1
        if is_one and kept is not None and spec.replicate in before:
            (after,), (value,) = reading.finals(record), before[spec.replicate]
            gain = cell.column.sign * (value - after) / cell.column.range
            expected = (note_value(record, name) for name in EXPECTED)
            yield Call(group, gain, not kept, *expected)


def _words(calls: Sequence[Call]) -> list[str]:
    """Return what a line says of some calls."""
    claims = claims_among(calls)
    lost = sum(call.true < -LOSS for call in calls)
    return [
        str(len(calls)),
        str(sum(call.is_adopted for call in calls)),
        str(len(claims)),
        *_of_claims(claims),
        str(lost),
        _gain(min(call.true for call in calls)),
    ]


def _of_claims(claims: Sequence[Call]) -> list[str]:
    claimed = stats.mean([claim.claimed or 0.0 for claim in claims])
    true = stats.mean([claim.true for claim in claims])
    if claimed is None or true is None:
        return [NOTHING] * 4
    bias = f"{100 * (claimed - true) / true:+z.0f} %" if true > 0 else NO_GAIN
    held = f"{100 * share_held(claims, LEVEL):.1f} %"
    return [held, _gain(claimed), _gain(true), bias]


def _gain(gain: float) -> str:
    return signed(gain, "fraction")

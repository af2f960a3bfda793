"""Answers of networks to some examples of the test, row by row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report.figures.panels import titled
from benchmarks.report.figures.pictures import RIGHT, WRONG, pixels_of
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PERSON_INCHES = 1.25
UNKNOWN = "#999999"
"""Colour of joints that are not labelled."""


def skeletons(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the joints that the networks of all rows find in the same people.

    Reads the notes `people` and `bones` of the first replicate; see
    `benchmarks.problems.structured.poses`.
    """
    shown = noting(layout, records, block, "people")
    if not shown:
        return None
    from matplotlib.figure import Figure

    people = shown[0].notes["people"]
    size = (PERSON_INCHES * len(people) + 1.6, PERSON_INCHES * 1.35 * len(shown) + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(shown), len(people), squeeze=False)
    labels = {row.name: row.label for row in layout.rows}
    for line, record in zip(panels, shown, strict=True):
        for panel, person in zip(line, record.notes["people"], strict=True):
            _draw_person(panel, person, record.notes["bones"])
        name = labels[record.spec.row].replace(" + ", "\n+ ")
        line[0].set_ylabel(
            name, fontsize="x-small", rotation=0, ha="right", va="center"
        )
    return titled(
        figure,
        f"{layout.title} ({block.label}):\nthe same people of the test, drawn by a "
        "fixed seed, first replicate.\nBlue: within a fifth of the torso; orange "
        "crosses: farther; grey: not labelled.",
    )


def noting(
    layout: TableLayout, records: Sequence[RunRecord], block: Block, note: str
) -> list[RunRecord]:
    """Return a record of every row that holds a note, in the order of the layout."""
    found = {
        record.spec.row: record
        for record in records
        if record.spec.block == block.name and record.notes.get(note)
    }
    return [found[row.name] for row in layout.rows if row.name in found]


def _draw_person(panel: "Axes", person: Any, bones: Any) -> None:
    joints = person["joints"]
    panel.imshow(pixels_of(person["jpeg"]))
    panel.set(xticks=[], yticks=[])
    for first, second in bones:
        x, y = zip(joints[first][:2], joints[second][:2], strict=True)
        panel.plot(x, y, color="white", linewidth=0.8, alpha=0.8)
    for x, y, near in joints:
        colour = UNKNOWN if near is None else RIGHT if near else WRONG
        panel.plot(x, y, color=colour, marker="o" if near else "x", markersize=2.5)

"""How losses rank groups of outputs beside how the metric does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.cells import note_value
from benchmarks.report.columns import NOTHING
from benchmarks.report.figures.panels import titled
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COST, LOSS, BASE = "held_out_cost", "held_out_loss", "held_out_base"
"""Notes: a number of every held-out group."""
BASES = ("rank_correlation_base", "rank_correlation_cross_entropy")
"""Notes of how well the usual loss ranks: for classes by its name."""
INCHES = 2.6


def loss_over_metric(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw the ranks of losses of held-out groups over the ranks of the metric's cost.

    Above the surrogates of the first replicate of every row, below the usual loss of
    the same groups. On the diagonal both rank alike.

    Source: Huang et al., ICLR 2022, the figure of rank correlations.
    """
    shown = _first(layout, records, block)
    if not shown:
        return None
    from matplotlib.figure import Figure
    from scipy.stats import rankdata

    size = (INCHES * len(shown) + 0.6, 2 * INCHES + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(2, len(shown), squeeze=False, sharex=True, sharey=True)
    labels = {row.name: row.label for row in layout.rows}
    notes = ((LOSS, ("rank_correlation",)), (BASE, BASES))
    for column, record in enumerate(shown):
        ranks = rankdata(record.notes[COST])
        for row, (note, correlations) in enumerate(notes):
            panel = panels[row, column]
            panel.scatter(ranks, rankdata(record.notes[note]), s=6, alpha=0.6)
            panel.plot([1, len(ranks)], [1, len(ranks)], color="grey", linewidth=0.6)
            values = [note_value(record, name) for name in correlations]
            known = [f"{value:.3f}" for value in values if value is not None]
            said = known[0] if known else NOTHING
            panel.set_title(f"rank correlation {said}", fontsize="small")
        panels[0, column].set_xlabel(labels[record.spec.row], fontsize="small")
        panels[1, column].set_xlabel("rank of the metric's cost")
    panels[0, 0].set_ylabel("rank of the surrogate")
    panels[1, 0].set_ylabel("rank of the usual loss")
    return titled(
        figure,
        f"{layout.title} ({block.label}):\nheld-out groups of outputs, first replicate",
    )


def _first(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> list[RunRecord]:
    """Return the first replicate of every row whose network noted its groups.

    Rows on top of a network have its notes, too; those that trained it stand for it.
    """
    own = [
        record
        for record in records
        if record.spec.block == block.name
        and record.status == "done"
        and record.spec.arm.kind == "theta"
        and record.notes.get(COST)
    ]
    found: dict[str, RunRecord] = {}
    for record in sorted(own, key=lambda record: record.spec.replicate):
        found.setdefault(record.spec.row, record)
    return [found[row.name] for row in layout.rows if row.name in found]

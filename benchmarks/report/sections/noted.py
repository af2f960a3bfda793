"""The sections of what runs note: metrics identified, training, losses, proposals."""

from collections.abc import Callable, Mapping, Sequence

from benchmarks.report import stats
from benchmarks.report.cells import Cell, note_value
from benchmarks.report.columns import NOTHING, Reading
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import section
from benchmarks.runs.record import NETWORK, PROPOSAL_RECALL, RunRecord

IDENTIFIED = "## Identified"
IDENTIFIED_LEGEND = (
    "A metric is identified if the value function predicts it before it is queried. "
    "`identified`: share of the searches of all runs in which it was, `after`: mean "
    "queries until then, `untouched`: share that returned the network as it was, "
    "`runs`: finished runs, each with its searches."
)
TRAINING = "## Training"
TRAINING_LEGEND = (
    "`training error`: error rate on 5,000 of the training images, without "
    "augmentation. `times`: gradient steps over those of the first row; `s`: seconds "
    "of the training, metric queries included."
)
AGREEMENT = "## Rank correlation with the metric"
AGREEMENT_LEGEND = (
    "Spearman's rank correlation of a loss with the metric's cost, over groups of "
    "examples. `held out`: recorded logits that the surrogate has not seen, with "
    "labels made up from all right to chance, as in its fitting. `observe`: outputs of "
    "the trained network with the true labels. Mean and deviation over replicates."
)
CORRELATIONS = {
    "held out": "rank_correlation",
    "held out, cross-entropy": "rank_correlation_cross_entropy",
    "observe": "rank_correlation_plain",
    "observe, cross-entropy": "rank_correlation_plain_cross_entropy",
}
RECORDED_LEGEND = (
    "Spearman's rank correlation of a loss with the metric's cost, over groups of "
    "examples. `held out`: recorded outputs that the surrogate has not seen, with "
    "their own targets, of all stages of a training. `observe`: outputs of the trained "
    "network. `usual loss`: the loss that the surrogate takes the place of. Mean and "
    "deviation over replicates."
)
RECORDED_CORRELATIONS = {
    "held out": "rank_correlation",
    "held out, usual loss": "rank_correlation_base",
    "observe": "rank_correlation_plain",
    "observe, usual loss": "rank_correlation_plain_base",
}
PROPOSALS = "## Proposals"
PROPOSALS_LEGEND = (
    "Share of the objects of the observe split that one of the 100 likeliest proposals "
    "of their image overlaps by more than half, mean and deviation over the detectors. "
    "Fine-tuning the box head leaves proposals as they are."
)


def _noting(cells: Sequence[Cell], note: str) -> list[Cell]:
    """Return the cells whose records hold a note.

    Columns that show a further metric of the runs of another one have none.
    """
    return [
        cell
        for cell in cells
        if cell.note(note) is not None and Reading(cell.column).is_aim_of(cell.records)
    ]


def identified(cells: Sequence[Cell]) -> list[str]:
    """Return the section on which metrics were identified: a line per cell."""
    lines = [
        [
            cell.block.label,
            cell.column.label,
            cell.row.label,
            _percent(cell.note("identified")),
            _queries_until(cell),
            _percent(cell.note("untouched")),
            str(len(cell.finished)),
        ]
        for cell in _noting(cells, "identified")
    ]
    names = ["block", "column", "method", "identified", "after", "untouched", "runs"]
    return section(IDENTIFIED, IDENTIFIED_LEGEND, lines, names)


def _queries_until(cell: Cell) -> str:
    """Return the mean queries until a metric was identified, over searches it was in.

    A run notes the mean over such searches of its own, and their share.
    """
    found = [
        (note_value(record, "identified"), note_value(record, "identified_after"))
        for record in cell.finished
    ]
    known = [(share, after) for share, after in found if share and after is not None]
    if not known:
        return NOTHING
    whole = sum(share for share, _ in known)
    return f"{sum(share * after for share, after in known) / whole:.1f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:z.0f} %"


def training_cost(cells: Sequence[Cell]) -> list[str]:
    """Return the section on what training took, and how well it fits its images."""
    told, lines = _noting(cells, "train_error"), []
    for cell in told:
        steps, first = (_mean(c, lambda r: r.gradient_steps) for c in (cell, told[0]))
        times = f"{steps / first:.1f}" if first else NOTHING
        queries = _mean(cell, lambda record: record.queries)
        seconds = _mean(cell, lambda record: record.seconds.get(NETWORK))
        error = _spread(cell, "train_error")
        place = [cell.column.label, cell.row.label]
        lines.append([*place, error, times, f"{queries:,.0f}", f"{seconds:,.0f}"])
    names = ["column", "method", "training error ↓", "times", "queries", "s"]
    return section(TRAINING, TRAINING_LEGEND, lines, names)


def _mean(cell: Cell, read: Callable[[RunRecord], float | None]) -> float:
    found = (read(record) for record in cell.finished)
    return stats.mean([value for value in found if value is not None]) or 0.0


def rank_agreement(cells: Sequence[Cell]) -> list[str]:
    """Return the section on how well losses rank outputs as the metric does."""
    return _agreement(cells, AGREEMENT_LEGEND, CORRELATIONS) + _agreement(
        cells, RECORDED_LEGEND, RECORDED_CORRELATIONS
    )


def _agreement(
    cells: Sequence[Cell], legend: str, notes: Mapping[str, str]
) -> list[str]:
    """Return the section, of some notes by heading, the second one in every record."""
    _, told, *_ = notes.values()
    lines = [
        [
            cell.column.label,
            cell.row.label,
            *(_spread(cell, note) for note in notes.values()),
        ]
        for cell in _noting(cells, told)
    ]
    return section(AGREEMENT, legend, lines, ["column", "method", *notes])


def _spread(cell: Cell, note: str) -> str:
    found = (note_value(record, note) for record in cell.finished)
    return cell.column.summary([value for value in found if value is not None])


def proposals(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section on what detectors propose, which no row of a table changes."""
    lines = []
    for block in layout.blocks:
        for source in dict.fromkeys(column.source for column in layout.columns):
            # One number for every detector, whatever its runs.
            found = {
                record.data["theta"]: float(record.data[PROPOSAL_RECALL])
                for record in records
                if (record.spec.block, record.spec.column) == (block.name, source)
                and PROPOSAL_RECALL in record.data
            }
            if found:
                mean = layout.columns[0].summary([found[key] for key in sorted(found)])
                lines.append([block.label, source, mean, str(len(found))])
    names = ["block", "images", "recall ↑", "detectors"]
    return section(PROPOSALS, PROPOSALS_LEGEND, lines, names)

"""The section on what detectors propose, which no row of a table changes."""

from collections.abc import Sequence

from benchmarks.report.layout import TableLayout
from benchmarks.report.render import to_markdown
from benchmarks.report.tables import text_table
from benchmarks.runs.record import PROPOSAL_RECALL, RunRecord

PROPOSALS = "## Proposals"
LEGEND = (
    "Share of the objects of the observe split that one of the 100 likeliest proposals "
    "of their image overlaps by more than half, mean and deviation over the detectors. "
    "Fine-tuning the box head leaves proposals as they are."
)


def proposals(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return the section as Markdown; empty if no record tells of proposals."""
    lines = []
    for block in layout.blocks:
        for source in dict.fromkeys(column.source for column in layout.columns):
            found = _recalls(records, block.name, source)
            if found:
                mean = layout.columns[0].summary(found)
                lines.append([block.label, source, mean, str(len(found))])
    if not lines:
        return []
    table = text_table(lines, ["block", "images", "recall ↑", "detectors"])
    return [PROPOSALS, LEGEND, to_markdown(table)]


def _recalls(records: Sequence[RunRecord], block: str, source: str) -> list[float]:
    """Return the recall of every detector that runs of a block and column are on."""
    found = {
        record.data["theta"]: float(record.data[PROPOSAL_RECALL])
        for record in records
        if (record.spec.block, record.spec.column) == (block, source)
        and PROPOSAL_RECALL in record.data
    }
    return [found[theta] for theta in sorted(found)]

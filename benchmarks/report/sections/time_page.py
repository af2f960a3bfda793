"""Where the time went: told apart from the tables, which no clock may change."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.columns import NOTHING
from benchmarks.report.layout import TableLayout
from benchmarks.report.render import count_range, text_table, to_markdown
from benchmarks.runs.codec import joint_digest
from benchmarks.runs.record import VALUE_FUNCTION, RunRecord

if TYPE_CHECKING:
    from pandas import DataFrame


def time_page(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return seconds by row, and the machines the runs were made on, as Markdown."""
    parts = [
        f"# {layout.title}: where the time went",
        _legend(records),
        to_markdown(time_table(layout, records)),
        "## Machines",
        _machines(records),
        f"Records: {len(records):,}, digest {joint_digest(r.digest for r in records)} "
        "(with time and machine)",
    ]
    return "\n\n".join(parts) + "\n"


def time_table(layout: TableLayout, records: Sequence[RunRecord]) -> "DataFrame":
    """Return queries, steps and mean wall seconds by phase for one run of each row.

    Args:
        layout: the experiment.
        records: all its records.
    """
    phases = sorted({name for record in records for name in record.seconds} - {"total"})
    lines = []
    for row in layout.rows:
        own = [record for record in records if record.spec.row == row.name]
        if own:
            lines.append([row.label, str(len(own)), *_spent(own, phases)])
    counts = ["queries", "shared queries", "steps"]
    seconds = [f"{phase} s" for phase in [*phases, "total"]]
    return text_table(lines, ["method", "runs", *counts, *seconds])


def _legend(records: Sequence[RunRecord]) -> str:
    legend = (
        "Mean wall seconds of one run with all its fine-tunings or searches, "
        "evaluation included."
    )
    if any(VALUE_FUNCTION in record.seconds for record in records):
        legend += (
            f" `{VALUE_FUNCTION} s`: seconds spent training the value function, "
            "averaged over the runs that recorded them. Rows and tables share value "
            "functions. If a run found its value function in the cache, its total does "
            "not contain this time."
        )
    return legend


def _machines(records: Sequence[RunRecord]) -> str:
    texts = (
        ", ".join(f"{name} {value}" for name, value in sorted(r.environment.items()))
        for r in records
    )
    return "\n".join(
        sorted(
            f"- {count} run{'s' if count > 1 else ''}: {text or 'unknown'}"
            for text, count in Counter(texts).items()
        )
    )


def _spent(records: Sequence[RunRecord], phases: Sequence[str]) -> list[str]:
    """Return counts, and mean seconds over the runs that tell those of a phase."""
    counts = [
        count_range([record.queries for record in records]),
        count_range([record.shared_queries for record in records]),
        count_range([record.gradient_steps for record in records]),
    ]
    told = [[record.seconds.get(phase) for record in records] for phase in phases]
    means = [stats.mean([value for value in own if value is not None]) for own in told]
    total = stats.mean([record.total_seconds for record in records])
    texts = [NOTHING if mean is None else f"{mean:.2f}" for mean in [*means, total]]
    return [*counts, *texts]

"""Records to the committed files of an experiment: text, LaTeX, CSV and figures."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import tables
from benchmarks.cells import Cell, judge
from benchmarks.figures import draw_all
from benchmarks.layout import (
    META_TEST,
    REPLICATE,
    TableLayout,
    data_variants,
    split_budget,
)
from benchmarks.panels import plain_style, to_png
from benchmarks.paths import write_atomically
from benchmarks.records import VALUE_FUNCTION, RunRecord, sort_records, write_jsonl
from benchmarks.render import to_csv, to_latex, to_markdown

RHO = (
    "`rho`: Spearman correlation of the value function with the metric on held-out "
    "trajectories"
)
TESTED_BY = {
    REPLICATE: "paired over replicates",
    META_TEST: (
        "Welch's t-test over meta-tests, which share network and data alone; a t-test "
        "of one sample against the only value of an arm"
    ),
}


def write_report(
    layout: TableLayout, records: Sequence[RunRecord], folder: str | Path
) -> list[Path]:
    """Write every table and figure of an experiment, and the records they come from.

    Writes `records.jsonl`, `table.md`, `table.csv`, `table.tex`, `time.md` and one PNG
    per figure, each atomically; figures of an earlier report that these records no
    longer give are removed. All but `time.md` and the records are free of wall time.

    Args:
        layout: the experiment.
        records: all its records of one tier, in any order.
        folder: such as `results/table3/local`; made if missing.

    Returns:
        The files written, sorted.

    Raises:
        DataError: if the records may not share one table.
    """
    folder = Path(folder)
    contents = build(layout, records)
    for name, content in contents.items():
        write_atomically(folder / name, content)
    for stale in set(folder.glob("*.png")) - {folder / name for name in contents}:
        os.remove(stale)
    # Last: whoever finds these records there may trust that the rest is of them.
    write_jsonl(folder / "records.jsonl", records)
    return sorted([folder / "records.jsonl", *(folder / name for name in contents)])


def build(layout: TableLayout, records: Sequence[RunRecord]) -> dict[str, bytes]:
    """Return the content of every file of a report but the records, by name.

    Args:
        layout: the experiment.
        records: all its records of one tier, in any order.

    Raises:
        DataError: if the records may not share one table.
    """
    records, layout = sort_records(records), _fitted(layout, records)
    cells = judge(layout, records)
    with plain_style():
        drawn = draw_all(layout, records)
        figures = {f"{name}.png": to_png(drawn[name]) for name in drawn}
    texts = {
        "table.md": _page(layout, records, cells, list(figures)),
        "table.csv": to_csv(tables.long_table(cells)),
        "table.tex": _latex(layout, records, cells),
        "time.md": _time_page(layout, records),
    }
    contents = {name: text.encode() for name, text in texts.items()}
    return contents | figures


def _fitted(layout: TableLayout, records: Sequence[RunRecord]) -> TableLayout:
    """Return the layout as these records want it: several networks are replicates."""
    several = len({record.spec.replicate for record in records}) > 1
    if layout.unit == META_TEST and several:
        return replace(layout, unit=REPLICATE)
    return layout


def _page(
    layout: TableLayout,
    records: Sequence[RunRecord],
    cells: Sequence[Cell],
    figures: Sequence[str],
) -> str:
    parts = [f"# {layout.title}", layout.caption, _facts(layout, records)]
    for block in layout.blocks:
        table = tables.main_table(layout, cells, block)
        if len(table):
            parts += [f"## {block.label}", to_markdown(table)]
    parts.append(_legend(layout))
    parts += _rival_parts(layout, cells)
    beside = tables.paper_table(layout, cells)
    if len(beside):
        parts += [f"## Beside {layout.paper_table}", to_markdown(beside)]
    parts += _gap_parts(layout, cells) + _query_parts(layout, records)
    if figures:
        links = "\n".join(f"![{name}]({name})" for name in figures)
        parts += ["## Figures", links]
    parts += ["## Notes", "\n".join(f"- {note}" for note in _notes(layout, cells))]
    return "\n\n".join(parts) + "\n"


def _legend(layout: TableLayout) -> str:
    """Say what a cell and its sign are."""
    apart = layout.paper_table and any(
        part.not_comparable for part in (*layout.columns, *layout.blocks)
    )
    spread = "mean ± sample std (replicates)"
    if layout.unit == META_TEST:
        spread = "mean ± sample std over meta-tests of one network (n)"
    return (
        f"Cells: {spread} on the test split. "
        "`+` better than its base loss, `=` no difference, `-` worse "
        f"({TESTED_BY[layout.unit]}, p < 0.05, Holm over the table), "
        "`?` too few to test. "
        "`queries`: metric queries charged to one run, meta-training included."
        + (" `*`: not comparable with the paper, see below." if apart else "")
    )


def _facts(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Say what the numbers are about: tier, data variants, convention."""
    columns: dict[str, list[str]] = {}
    for column in layout.columns:
        for variant in data_variants(records, column.name):
            columns.setdefault(variant, []).append(column.label)
    data = ". ".join(
        f"{variant} ({'; '.join(labels)})" for variant, labels in columns.items()
    )
    facts = {
        "Tier": records[0].spec.tier,
        "Data": data or "not recorded",
        "Convention": layout.convention,
    }
    if layout.unit == META_TEST:
        facts["Spread"] = (
            "over meta-tests of one network on one test split, for which alone "
            "verdicts hold; networks of which one was trained have none"
        )
    return "\n".join(f"- {name}: {text}" for name, text in facts.items())


def _rival_parts(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    table = tables.rival_table(layout, cells)
    if not len(table):
        return []
    explained = (
        "Cost of the row under `against` minus that of the method on the test split: "
        "positive is better for the method: mean, 95 % interval (Welch's, or else a "
        "bootstrap), p value and verdict at 0.05 "
        f"({TESTED_BY[layout.unit]}, Holm over this section)."
    )
    return ["## Against another method", explained, to_markdown(table)]


def _gap_parts(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    parts = []
    for block in layout.blocks:
        table = tables.gap_table(layout, cells, block)
        if len(table):
            parts += [f"### {block.label}", to_markdown(table)]
    if not parts:
        return []
    if layout.threshold_shift_row is None:
        return ["## Value functions", f"{RHO}.", *parts]
    explained = (
        "Share of the threshold shift's gain over loss-only fine-tuning that a method "
        "reaches; `in noise` where that gain is no larger than twice its standard "
        f"error or too few {layout.unit}s tell. {RHO}."
    )
    return ["## Gap closed", explained, *parts]


def _query_parts(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    parts = []
    for block in layout.blocks:
        for column in layout.columns:
            table = tables.equal_queries_table(layout, records, block, column)
            if len(table):
                title = f"### {block.label}, {column.heading}"
                parts += [title, to_markdown(table)]
    if not parts:
        return []
    explained = (
        "What a method would return after so many metric queries, those of "
        "meta-training included: mean ± sample std on test / mean on observe."
    )
    return ["## At equal queries", explained, *parts]


def _notes(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Collect what an honest reader must be told, each thing once."""
    labels = {row.name: row.label for row in layout.rows}
    notes = list(layout.notes)
    shown = {cell.row for cell in cells}
    rows = [row for row in layout.rows if row in shown]
    tested: dict[str, list[str]] = {}
    for row in rows:
        if row.base_row is not None and split_budget(row.name)[1] is None:
            tested.setdefault(labels[row.base_row], []).append(row.label)
    notes += [
        f"Tested against {base}: {'; '.join(own)}." for base, own in tested.items()
    ]
    notes += [f"{row.label}: {row.note}" for row in rows if row.note]
    reasons = [(part.label, part.not_comparable) for part in layout.columns]
    reasons += [(part.label, part.not_comparable) for part in layout.blocks]
    for label, reason in reasons:
        if reason:
            notes.append(f"{label}: not comparable with the paper: {reason}")
    notes += [cell.paper.note for cell in cells if cell.paper and cell.paper.note]
    notes += _trouble_notes(cells)
    return list(dict.fromkeys(notes)) or ["Nothing to add."]


def _trouble_notes(cells: Sequence[Cell]) -> list[str]:
    notes = []
    for cell in cells:
        if cell.trouble:
            place = f"{cell.block.label}, {cell.row.label}, {cell.column.label}"
            # A message may hold line breaks, a list item may not.
            messages = [" ".join(record.message.split()) for record in cell.records]
            reasons = "; ".join(dict.fromkeys(filter(None, messages)))
            notes.append(f"{place}: {cell.trouble}{': ' if reasons else ''}{reasons}")
    return notes


def _latex(
    layout: TableLayout, records: Sequence[RunRecord], cells: Sequence[Cell]
) -> str:
    parts = []
    for block in layout.blocks:
        table = tables.main_table(layout, cells, block)
        if len(table):
            facts = _facts(layout, records).replace("- ", "").replace("\n", "; ")
            caption = f"{layout.title} ({block.label}). {layout.caption} {facts}."
            parts.append(to_latex(table, caption=caption))
    return "\n".join(parts)


def _time_legend(records: Sequence[RunRecord]) -> str:
    legend = (
        "Mean wall seconds of one run with all its fine-tunings or searches, "
        "evaluation included."
    )
    if any(VALUE_FUNCTION in record.seconds for record in records):
        legend += (
            f" `{VALUE_FUNCTION} s`: the training of the one a row uses, over the runs "
            "that know it. Rows and tables share value functions: the total of a run "
            "that found its own in the cache lacks this time."
        )
    return legend


def _time_page(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Say where the time went, apart from the tables, which no clock may change."""
    machines: dict[str, int] = {}
    for record in records:
        pairs = sorted(record.environment.items())
        text = ", ".join(f"{name} {value}" for name, value in pairs)
        machines[text] = machines.get(text, 0) + 1
    lines = [
        f"- {count} run{'s' if count > 1 else ''}: {text or 'unknown'}"
        for text, count in machines.items()
    ]
    parts = [
        f"# {layout.title}: where the time went",
        _time_legend(records),
        to_markdown(tables.time_table(layout, records)),
        "## Machines",
        "\n".join(sorted(lines)),
    ]
    return "\n\n".join(parts) + "\n"

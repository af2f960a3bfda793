"""What a page says around its tables: facts, legends and notes."""

from collections.abc import Sequence

from benchmarks.report.cells import Cell
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, TableLayout, data_variants, split_budget
from benchmarks.report.reading import META_TEST, REPLICATE
from benchmarks.runs.record import RunRecord

RHO = (
    "`rho`: Spearman correlation of the value function with the metric on held-out "
    "trajectories"
)
TESTED_BY = {
    REPLICATE: "paired over replicates",
    META_TEST: (
        "Welch's t-test over meta-tests, which share network and data; against an arm "
        "with a single value a one-sample t-test"
    ),
}
AT_EQUAL_QUERIES = (
    "What a method would return at each budget of metric queries, meta-training "
    "included. Cells: mean ± sample std on test / mean on observe."
)


def facts(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return what the numbers are about: tier, data variants, convention."""
    columns: dict[str, list[str]] = {}
    for column in layout.columns:
        for variant in data_variants(records, column):
            columns.setdefault(variant, []).append(column.label)
    data = ". ".join(
        f"{variant} ({'; '.join(labels)})" for variant, labels in columns.items()
    )
    found = {
        "Tier": records[0].spec.tier,
        "Data": data or "not recorded",
        "Convention": layout.convention,
    }
    if layout.unit == META_TEST:
        found["Spread"] = (
            "over meta-tests of one network on one test split. Verdicts hold for that "
            "network and split only. A row that is a single network has no spread"
        )
    return "\n".join(f"- {name}: {text}" for name, text in found.items())


def legend(layout: TableLayout) -> str:
    """Return what a cell and its sign are."""
    apart = layout.paper_table and any(part.not_comparable for part in _parts(layout))
    spread = "mean ± sample std (replicates)"
    if layout.unit == META_TEST:
        spread = "mean ± sample std over meta-tests of one network (n)"
    return (
        f"Cells: {spread} on the test split. Signs compare a row with its base loss: "
        "`+` better, `=` no difference, `-` worse, `?` too few values to test "
        f"({TESTED_BY[layout.unit]}; p < 0.05, Holm over the table). "
        "`queries`: metric queries charged to one run, meta-training included."
        + (" `*`: not comparable with the paper, see below." if apart else "")
    )


def rival_legend(layout: TableLayout) -> str:
    """Return what the comparison with another method shows."""
    return (
        "`difference`: cost of the row under `against` minus cost of the method, on "
        "the test split; positive means that the method is better. The 95 % "
        "interval is "
        "Welch's, or a bootstrap if values are paired. Verdicts at 0.05 "
        f"({TESTED_BY[layout.unit]}; Holm over this section)."
    )


def gap_legend(layout: TableLayout) -> str:
    """Return what the closed gap, or a value function's `rho`, is."""
    if layout.threshold_shift_row is None:
        return f"{RHO}."
    return (
        "Share of the threshold shift's gain over loss-only fine-tuning that a method "
        "reaches. `in noise`: that gain is at most twice its standard error, or there "
        f"are too few {layout.unit}s to tell. {RHO}."
    )


def notes(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return what an honest reader must be told, each thing once."""
    found = list(layout.notes)
    shown = {cell.row for cell in cells}
    rows = [row for row in layout.rows if row in shown]
    found += _base_notes(layout, cells)
    found += [f"{row.label}: {row.note}" for row in rows if row.note]
    for part in _parts(layout):
        if part.not_comparable:
            found.append(
                f"{part.label}: not comparable with the paper: {part.not_comparable}"
            )
    found += [cell.paper.note for cell in cells if cell.paper and cell.paper.note]
    found += _trouble_notes(cells)
    return list(dict.fromkeys(found)) or ["Nothing to add."]


def _parts(layout: TableLayout) -> list[Column | Block]:
    return [*layout.columns, *layout.blocks]


def _base_notes(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return which rows are tested against which."""
    labels = {row.name: row.label for row in layout.rows}
    shown = {cell.row for cell in cells}
    tested: dict[str, list[str]] = {}
    for row in layout.rows:
        is_tested = row.base_row is not None and split_budget(row.name)[1] is None
        if row in shown and is_tested:
            tested.setdefault(labels[row.base_row or ""], []).append(row.label)
    return [f"Tested against {base}: {'; '.join(own)}." for base, own in tested.items()]


def _trouble_notes(cells: Sequence[Cell]) -> list[str]:
    found = []
    for cell in cells:
        if cell.trouble:
            place = f"{cell.block.label}, {cell.row.label}, {cell.column.label}"
            # A message may hold line breaks, a list item may not.
            messages = [" ".join(record.message.split()) for record in cell.records]
            reasons = "; ".join(dict.fromkeys(filter(None, messages)))
            found.append(f"{place}: {cell.trouble}{': ' if reasons else ''}{reasons}")
    return found

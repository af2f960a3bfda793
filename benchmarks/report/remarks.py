"""What a page says around its tables: facts, legends and notes."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import mode

from benchmarks.report import stats
from benchmarks.report.cells import Cell
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, TableLayout, data_variants
from benchmarks.rows.contract import SEES
from benchmarks.runs.codec import joint_digest
from benchmarks.runs.record import RunRecord

RHO = (
    "`rho`: Spearman correlations of the value function with the metric on held-out "
    "trajectories, along the loss / along guided steps"
)
OF_LEARNERS = (
    "over replicates, each with first weights and tasks of its own, and its own split "
    "of classes where no publication fixes one. A replicate counts with the mean over "
    "its new tasks."
)
OF_TASKS = (
    "over the new tasks of one learner. It does not hold the differences between "
    "splits of classes, first weights or meta-trainings."
)
SEEN = {
    "metric values": "The metric at a phi, and nothing else.",
    "loss gradients": "Also the loss on the train split, with its gradients.",
    "outputs and labels": "Also the network's outputs and the labels on observe.",
    "edited predictions": "Also the metric of predictions that are not the network's.",
    "formula": "Also how the metric is computed: a ceiling.",
    "test": "The test split: a ceiling.",
}
"""What each word of `SEES` means to a reader of a table."""


def facts(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return what the numbers are about: tier, data variants, convention, records."""
    found = {
        "Tier": records[0].spec.tier,
        "Data": _data(layout, records) or "not recorded",
        "Convention": layout.convention,
    }
    found["Spread"] = " ".join(_spread(layout, records))
    digest = joint_digest(record.outcome_digest for record in records)
    found["Records"] = f"{len(records):,}, digest {digest} (without time and machine)"
    return "\n".join(f"- {name}: {text}" for name, text in found.items())


def _data(layout: TableLayout, records: Sequence[RunRecord]) -> str:
    """Return the data variants, with the columns that show them, or else blocks."""
    places: dict[str, list[str]] = {}
    by_column = {c.label: data_variants(records, c) for c in layout.columns}
    if any(len(variants) > 1 for variants in by_column.values()):
        by_column = {
            block.label: {
                record.data["variant"]
                for record in records
                if record.spec.block == block.name and "variant" in record.data
            }
            for block in layout.blocks
        }
    for label, variants in by_column.items():
        for variant in variants:
            places.setdefault(variant, []).append(label)
    return ". ".join(f"{name} ({'; '.join(each)})" for name, each in places.items())


def _spread(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return what spread, intervals and tests are over, one sentence each."""
    if layout.of_learners:
        return [OF_LEARNERS if layout.replicated else OF_TASKS]
    once = [column.label for column in layout.columns if column.source in layout.once]
    single = [record for record in records if record.spec.column in layout.once]
    own = [record for record in records if record.spec.column not in layout.once]
    several = any(map(_several, own))
    found = [_of_replicates(layout) if layout.replicated else _of_network(several)]
    if once:
        alone = _of_network(any(map(_several, single)))
        found.append(f"In {'; '.join(once)} it is {alone}")
    if layout.replicated and any(len(r.values("test")) > 1 for r in own):
        within = "value functions and meta-tests" if several else "meta-tests"
        found.append(f"A replicate counts with the mean over its {within}.")
    return [*found, *_value_functions(layout, records)]


def _value_functions(layout: TableLayout, records: Sequence[RunRecord]) -> list[str]:
    """Return which rows have one value function only, if any meta-trains."""
    varied = {record.spec.column for record in records if _several(record)}
    alone = {
        record.spec.row
        for record in records
        if record.shared_queries
        and not _several(record)
        and (not varied or record.spec.column in varied)
    }
    labels = [row.label for row in layout.rows if row.name in alone]
    if not labels:
        return []
    if varied:
        return [f"One value function only: {'; '.join(labels)}."]
    per = " of each replicate" if layout.replicated else ""
    return [f"In a row that meta-trains, all runs{per} share one value function."]


def _several(record: RunRecord) -> bool:
    return record.spec.value_functions > 1


def _of_replicates(layout: TableLayout) -> str:
    if any(column.test_per_train for column in layout.columns):
        own = "a random split, a network, an adapter and batches of its own."
        return f"over replicates, each with {own}"
    own = "an observe split, a network, an adapter and batches of its own"
    return f"over replicates, each with {own}; all share the test split."


def _of_network(several: bool) -> str:
    functions = (
        " In rows with several value functions it is over these, each with the mean of "
        "its meta-tests, which start alike for all and count as given."
    )
    return (
        "over meta-tests, the fine-tuning runs or searches of one network on one test "
        "split." + (functions if several else "") + " It does not hold the differences "
        "between networks, splits or training runs, nor the sampling error of the test "
        "split: verdicts are on that network and split only. A row that is a single "
        "network has no spread."
    )


def _tests(layout: TableLayout) -> str:
    """Return how differences are tested."""
    of_network = (
        "t-tests by pairs where both rows are fine-tuning runs, the i-th of one "
        "with the i-th of the other; of one sample where a row has a single value; "
        "else Welch's"
    )
    if not layout.replicated:
        return of_network
    ratios = sorted({c.test_per_train for c in layout.columns} - {0.0})
    if not ratios:
        alone = f"; with one replicate, {of_network}" if layout.once else ""
        return f"t-tests by pairs of replicates{alone}"
    shown = " or ".join(f"{ratio:.2f}" for ratio in ratios)
    return (
        "t-tests by pairs of replicates, corrected for overlapping splits as by Nadeau "
        f"and Bengio, 2003, n_test / n_train = {shown}"
    )


def _margins(layout: TableLayout) -> str:
    """Return the usual equivalence margin, and those of columns that have another."""
    margins = {c.label: c.format(c.equal_within) for c in layout.columns}
    usual = mode(margins.values())
    others = [f"{text} in {label}" for label, text in margins.items() if text != usual]
    return " and ".join([usual, *others])


def legend(layout: TableLayout) -> str:
    """Return what a cell and its sign are."""
    apart = layout.paper_table and any(part.not_comparable for part in _parts(layout))
    where, base = "on the test split", "its base loss"
    queries = " `queries`: metric queries charged to one run, meta-training included."
    if layout.of_learners:
        where, base, queries = "on new tasks", "the row it is tested against", ""
    return (
        f"Cells: mean ± sample std (n) {where}; `Spread` above says of what. "
        f"Signs compare a row with {base}: `+` better, `-` worse, `?` not shown, "
        f"`=` equal within {_margins(layout)} (two one-sided tests). Without a sign a "
        f"row has no base, or there are too few values to test. Tests: {_tests(layout)}"
        f"; p < {stats.LEVEL} after Holm over the columns of a row."
        + queries
        + (" `*`: not comparable with the paper, see below." if apart else "")
        + _seen(layout)
    )


def _seen(layout: TableLayout) -> str:
    """Return what the words of the column `sees` mean, empty without that column."""
    own = set(layout.sees.values())
    sentences = [f" `{word}`: {SEEN[word]}" for word in SEES if word in own]
    if not sentences:
        return ""
    told = " `sees`: what a method knows of a problem besides its metric queries."
    return told + "".join(sentences)


def rival_legend(layout: TableLayout) -> str:
    """Return what the comparison with another method shows."""
    return (
        "`difference`: cost of the row under `against` minus cost of the method, on "
        "the test split; positive means that the method is better. Intervals are t "
        "intervals, each by itself. `p` and verdict: as above, Holm over the columns "
        "of a method."
    )


def nothing_shown(cells: Sequence[Cell]) -> str:
    """Return what stands above a table in which no difference can be shown.

    That is so where even the greatest difference the metrics allow would not be found
    beside the spread there is, however few the columns of a question.

    Args:
        cells: of one block, in the order of the layout.

    Returns:
        The sentence; empty if something can be shown, or nothing is tested.
    """
    tested = [cell for cell in cells if cell.tested and cell.against_base]
    least = [p for _, own in groupby(tested, key=lambda c: c.row) for p in _least(own)]
    if not tested or any(p < stats.LEVEL for p in least):
        return ""
    counts = {n for c in tested if c.against_base for n in c.against_base.values}
    n = " to ".join(str(end) for end in dict.fromkeys([min(counts), max(counts)]))
    why = "there is no test"
    if least:
        why = f"no comparison can reach a p below {min(least):.2f} after Holm"
    return f"Nothing can be shown in this table: with n = {n}, {why}."


def _least(cells: Iterable[Cell]) -> list[float]:
    """Return the smallest p values that the cells of a row can reach after Holm."""
    found = [
        None if (one := cell.against_base) is None else one.least_p(cell.column.range)
        for cell in cells
    ]
    return [p for p in stats.holm(found) if p is not None]


def gap_legend(layout: TableLayout) -> str:
    """Return what the closed gap, or a value function's `rho`, is."""
    if layout.threshold_shift_row is None:
        return f"{RHO}."
    return (
        "Share of the threshold shift's gain over loss-only fine-tuning that a method "
        "reaches. `in noise`: that gain is at most twice its standard error, or there "
        f"are too few values to tell. {RHO}."
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
        is_tested = row.base_row is not None and row.budget is None
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

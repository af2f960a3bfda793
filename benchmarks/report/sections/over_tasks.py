"""What learners reach on new tasks, and comparisons task by task."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import NormalDist, fmean

from benchmarks.report import stats
from benchmarks.report.cells import BETTER, EQUAL, NOT_SHOWN, WORSE, Cell
from benchmarks.report.columns import NOTHING
from benchmarks.report.layout import OverTasks, TableLayout
from benchmarks.report.render import section
from benchmarks.runs.notes import (
    META_PARAMETERS,
    QUERY_ACCURACY,
    QUERY_STEPS,
    TASK_DIVERGED,
    TRAINED_STEPS,
)
from benchmarks.runs.record import RunRecord

TASKS = "## New tasks"
TASKS_LEGEND = (
    "Mean over all new tasks of all replicates, ± half of its normal 95 % interval, as "
    "in publications. The interval does not hold the differences between "
    "meta-trainings. `meta-parameters`: numbers that are meta-learned. `diverged`: "
    "tasks whose outputs are not finite in the end; they count as wrong."
)
PAIRED = "## Task by task"
PAIRED_LEGEND = (
    "`gain`: mean difference over all `tasks`, positive where the method is better, "
    "with its t interval. Tests are paired by tasks, and adjusted by Holm over the "
    "columns of a comparison. They hold for what was meta-trained here, which tasks "
    "share; what is meta-trained anew may differ by more."
)
REACH = "## Inner steps to the accuracy of {}"
REACH_LEGEND = (
    "The least inner steps at which the mean query accuracy on the new tasks of a "
    "replicate is that of {} after the {} steps of its meta-training, one number a "
    "replicate; `·`: never. `best`: highest mean accuracy over all steps, and `at` its "
    "steps, means over replicates. Steps that are looked at: {}."
)
FAR_APART = 1_000_000
"""More than any number of tasks: numbers tasks of one replicate after another."""


def new_tasks(layout: TableLayout, cells: Sequence[Cell]) -> list[str]:
    """Return the sections; none for a table that has nothing to compare by task."""
    if layout.over_tasks is None:
        return []
    if not layout.of_learners:
        return _paired(layout.over_tasks, cells)
    names = ["column", "method", "mean ± 95 %", "tasks", "meta-parameters", "diverged"]
    lines = [_line(cell) for cell in cells if cell.finished]
    return [
        *section(TASKS, TASKS_LEGEND, lines, names),
        *_paired(layout.over_tasks, cells),
        *_reached(layout, layout.over_tasks, cells),
    ]


def _line(cell: Cell) -> list[str]:
    values = [*_by_task(cell).values()]
    mean, spread = stats.mean(values), stats.sample_std(values)
    half = NormalDist().inv_cdf(0.975) * (spread or 0.0) / sqrt(len(values))
    size = cell.note(META_PARAMETERS)
    diverged = sum(
        value or 0.0
        for record in cell.finished
        for value in record.values("test", TASK_DIVERGED)
    )
    return [
        cell.column.heading,
        cell.row.label,
        cell.column.spread(mean, half),
        f"{len(values):,}",
        NOTHING if size is None else f"{size:,.0f}",
        f"{diverged:.0f}",
    ]


def _by_task(cell: Cell) -> dict[int, float]:
    """Return the values of all tasks of all finished replicates, by their numbers.

    A task that several optimizers of a run had counts with their mean.
    """
    label, found = cell.column.metric.label, defaultdict[int, list[float]](list)
    for record in cell.finished:
        values = record.values("test", label)
        tasks = len(values) // record.spec.value_functions
        for number, value in enumerate(values):
            if value is not None:
                found[record.spec.replicate * FAR_APART + number % tasks].append(value)
    return {number: fmean(values) for number, values in found.items()}


def _paired(wanted: OverTasks, cells: Sequence[Cell]) -> list[str]:
    lines = []
    for row in wanted.rows:
        for other in wanted.against:
            lines += _comparison(row, other, cells)
    names = ["column", "method", "against", "tasks", "gain", "95 % interval", "p"]
    return section(PAIRED, PAIRED_LEGEND, lines, [*names, "verdict"])


def _comparison(row: str, other: str, cells: Sequence[Cell]) -> list[list[str]]:
    """Return a line for every column that both rows have."""
    bases = {cell.column.name: cell for cell in cells if cell.row.name == other}
    pairs = [
        (cell, bases[cell.column.name])
        for cell in cells
        if cell.row.name == row and cell.column.name in bases
    ]
    found = stats.adjust(
        [
            stats.compare(_costs(base), _costs(cell), paired=True)
            for cell, base in pairs
        ],
        [cell.column.equal_within for cell, _ in pairs],
    )
    return [
        _compared(cell, base, comparison)
        for (cell, base), comparison in zip(pairs, found, strict=True)
        if comparison is not None
    ]


def _costs(cell: Cell) -> dict[int, float]:
    return {key: cell.column.sign * value for key, value in _by_task(cell).items()}


def _compared(cell: Cell, base: Cell, found: stats.Comparison) -> list[str]:
    column = cell.column
    ends = [column.signed(end) for end in found.interval or ()]
    p = found.p_holm
    text = NOTHING if p is None else "<.001" if p < 0.001 else f"{p:.3f}"
    return [
        column.heading,
        cell.row.label,
        base.row.label,
        f"{found.values[0]:,}",
        column.signed(found.gain),
        f"{ends[0]} to {ends[1]}" if ends else NOTHING,
        text.removeprefix("0"),
        _word(cell, found),
    ]


def _word(cell: Cell, found: stats.Comparison) -> str:
    p, equal = found.p_holm, found.p_equal_holm
    if p is not None and p < stats.LEVEL:
        return BETTER if found.gain > 0 else WORSE
    if equal is not None and equal < stats.LEVEL:
        return f"{EQUAL} within {cell.column.format(cell.column.equal_within)}"
    return NOT_SHOWN


def _reached(
    layout: TableLayout, wanted: OverTasks, cells: Sequence[Cell]
) -> list[str]:
    """Return the section on inner steps; empty if no run notes how it adapts."""
    noting = [cell for cell in cells if cell.note(QUERY_STEPS) is not None]
    goals = {c.column.name: c for c in noting if c.row.name == wanted.reach}
    lines, steps = [], 0
    for cell in noting:
        goal = goals.get(cell.column.name)
        if goal is not None:
            steps = int(goal.note(TRAINED_STEPS) or 0)
            lines.append(_steps_line(cell, _accuracies(goal, steps)))
    if not lines:
        return []
    label = next(row.label for row in layout.rows if row.name == wanted.reach)
    looked_at = noting[0].finished[0].notes[QUERY_STEPS]
    seen = ", ".join(map(str, looked_at))
    names = ["column", "method", "steps", "best", "at"]
    return section(
        REACH.format(label), REACH_LEGEND.format(label, steps, seen), lines, names
    )


def _accuracies(cell: Cell, steps: int) -> dict[int, float]:
    """Return the mean accuracy after some steps, by replicate."""
    return {
        record.spec.replicate: _course(record)[steps]
        for record in cell.finished
        if steps in _course(record)
    }


def _course(record: RunRecord) -> Mapping[int, float]:
    """Return the mean query accuracy of a run by inner steps."""
    pairs = zip(record.notes[QUERY_STEPS], record.notes[QUERY_ACCURACY], strict=True)
    return dict(pairs)


def _steps_line(cell: Cell, goal: Mapping[int, float]) -> list[str]:
    own = [r for r in cell.finished if r.spec.replicate in goal]
    needed = [_needed(_course(record), goal[record.spec.replicate]) for record in own]
    best = [max(_course(record).items(), key=lambda item: item[1]) for record in own]
    return [
        cell.column.heading,
        cell.row.label,
        ", ".join(NOTHING if step is None else str(step) for step in needed),
        cell.column.summary([accuracy for _, accuracy in best]),
        _mean(step for step, _ in best),
    ]


def _needed(course: Mapping[int, float], goal: float) -> int | None:
    return next((step for step, accuracy in course.items() if accuracy >= goal), None)


def _mean(values: Iterable[float]) -> str:
    mean = stats.mean([*values])
    return NOTHING if mean is None else f"{mean:.1f}"

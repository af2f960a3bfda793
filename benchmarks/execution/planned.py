"""How long runs will take, from those that were measured."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from benchmarks.runs.record import RunRecord
from benchmarks.runs.spec import RunSpec


def planned_seconds(
    specs: Sequence[RunSpec], records: Iterable[RunRecord]
) -> dict[str, float]:
    """Return the seconds that runs are likely to take, by digest.

    The mean of the nearest records: of the row in its column and block, of the row in
    its column, of the row. Runs of a row without any record are left out.

    Args:
        specs: the runs.
        records: what was measured, in any experiment or tier.
    """
    measured: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for record in records:
        for place in _places(record.spec):
            measured[place].append(record.total_seconds)
    found = {}
    for spec in specs:
        nearest = next((p for p in _places(spec) if p in measured), None)
        if nearest is not None:
            found[spec.digest] = fmean(measured[nearest])
    return found


def _places(spec: RunSpec) -> tuple[tuple[str, ...], ...]:
    row, column = spec.row, spec.column
    return (row, column, spec.block), (row, column), (row,)

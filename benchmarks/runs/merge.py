"""Records of several stores, put into one."""

from collections.abc import Iterable, Sequence

from benchmarks.runs.record import FAILED, RunRecord
from benchmarks.runs.spec import RunSpec
from benchmarks.runs.store import RunStore
from metricopt.errors import DataError


def merge(
    sources: Sequence[RunStore], store: RunStore, specs: Iterable[RunSpec]
) -> list[int]:
    """Put the records of several stores into one, all or none.

    A run that two stores hold has to be the same in both, but for time and machine; one
    record of it stays. A run that failed gives way to one that measured something.

    Args:
        sources: where records come from.
        store: where they go; what it holds stays.
        specs: the runs whose records are merged.

    Returns:
        The number of records that came from each source.

    Raises:
        DataError: if a source is no folder, a record is damaged, or two stores hold
            different values of one run; the message names both records.
    """
    for source in sources:
        if not source.root.is_dir():
            raise DataError(f"expected a run store, and {source.root} is no folder")
    new = [_new(sources, store, spec) for spec in specs]
    for _, record in (found for found in new if found):
        store.put(record)
    places = [place for place, _ in (found for found in new if found)]
    return [places.count(place) for place in range(len(sources))]


def _new(
    sources: Sequence[RunStore], store: RunStore, spec: RunSpec
) -> tuple[int, RunRecord] | None:
    """Return the record of a run that a store lacks, and the source that has it."""
    best, holder = store.get(spec), store
    found = None
    for place, source in enumerate(sources):
        record = source.get(spec)
        if record is None:
            continue
        if best is None or (best.status == FAILED != record.status):
            best, holder, found = record, source, (place, record)
        elif record.status != FAILED and record.outcome_digest != best.outcome_digest:
            raise DataError(
                f"{holder.path(spec)} and {source.path(spec)} hold different values of "
                "one run; expected the same from the same data and code. Move one of "
                "them away"
            )
    return found


def strangers(
    source: RunStore, experiments: Iterable[tuple[str, str]], specs: Iterable[RunSpec]
) -> int:
    """Return how many records of experiments in a store are of none of some runs.

    Args:
        source: the store.
        experiments: names, each with a tier.
        specs: the runs that are known.
    """
    known = {source.path(spec) for spec in specs}
    there = {
        path
        for name, tier in experiments
        for path in source.root.glob(f"{name}/{tier}/*/record.json")
    }
    return len(there - known)

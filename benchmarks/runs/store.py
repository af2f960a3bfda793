"""The run store, and the lines of records kept in git."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.runs.paths import ensure_writable
from benchmarks.runs.record import (
    FAILED,
    AlteredError,
    RunRecord,
    SchemaError,
    SpecMismatchError,
)
from benchmarks.runs.spec import RunSpec, check_unique
from metricopt.errors import DataError
from metricopt.files import read_text, write_atomically

WRONG = {
    SpecMismatchError: "the record {path} was changed: {error}",
    AlteredError: "{path}: {error}; restore it, or remove it to make its run again",
    SchemaError: "{path}: {error}",
}
"""What is said of a record that is not as it was written, by the kind of error."""
WAY_OUT = "delete it, and the next run of its table makes it again"
DAMAGED = f"the record {{path}} is damaged: {{error}}; {WAY_OUT}"


class RunStore:
    """One folder per run; a run is complete when its `record.json` exists.

    Several processes may use one store: a record appears whole, by a rename. A record
    that is to be made again is marked as stale. It stays until the new one replaces
    it, so that a killed run loses nothing and knows what is left to do.

    Args:
        root: folder of the store; made by the first write.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def ensure_writable(self) -> None:
        """Make the folder and write to it, before any work is done.

        Raises:
            ConfigError: if that fails, or its disk is full.
        """
        ensure_writable("the run store", self.root)

    def path(self, spec: RunSpec) -> Path:
        """Return where the record of a spec lies or will lie."""
        return self.root / spec.folder / "record.json"

    def get(self, spec: RunSpec) -> RunRecord | None:
        """Return the record of a spec, stale or not; None if it has not been run.

        Raises:
            DataError: if the record is damaged. It is never made again unasked.
            SpecMismatchError: if the record was written for another spec.
            AlteredError: if the record was changed.
            SchemaError: if other code wrote the record.
        """
        path = self.path(spec)
        try:
            record = RunRecord.from_json(read_text(path))
        except FileNotFoundError:
            return None
        except DataError as error:
            told = WRONG.get(type(error), DAMAGED).format(path=path, error=error)
            raise type(error)(told) from error
        if record.spec.digest != spec.digest:
            raise SpecMismatchError(
                f"the record {path} is of run {record.spec.digest[:12]}, "
                f"expected {spec.digest[:12]}"
            )
        return record

    def put(self, record: RunRecord) -> Path:
        """Write a record atomically, no longer stale, and return its path.

        A failed record does not replace a measured one, which stays stale.
        """
        path = self.path(record.spec)
        beside = path.with_name("record.json.failed")
        content = f"{record.to_json()}\n".encode()
        if record.status == FAILED and self._is_measured(record.spec):
            write_atomically(beside, content)
            return beside
        write_atomically(path, content)
        beside.unlink(missing_ok=True)
        # Last: a crash before it only repeats the run.
        self._marker(record.spec).unlink(missing_ok=True)
        return path

    def problems(self, experiments: Iterable[str]) -> list[str]:
        """Return what is wrong with the records of experiments, one sentence each."""
        found = []
        for name in experiments:
            for path in sorted(self.root.glob(f"{name}/*/*/record.json")):
                try:
                    record = RunRecord.from_json(read_text(path))
                    if path != self.path(record.spec):
                        raise DataError("this is the record of another run")
                except (DataError, OSError) as error:
                    found.append(f"{path}: {error}; {WAY_OUT}")
        return found

    def mark_stale(self, specs: Iterable[RunSpec]) -> None:
        """Mark the records of these specs, if there are any, to be made again.

        All of them or none: some marks would look like what an interrupt left.
        """
        marked: list[Path] = []
        try:
            for spec in specs:
                if self.path(spec).exists():
                    marked.append(self._marker(spec))
                    marked[-1].touch()
        except BaseException:
            for marker in marked:
                marker.unlink(missing_ok=True)
            raise

    def stale(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """Return the specs whose records are to be made again.

        Specs that are stale before `mark_stale` is called were left over by an
        interrupted run.
        """
        return [spec for spec in specs if self._marker(spec).exists()]

    def _is_measured(self, spec: RunSpec) -> bool:
        try:
            record = self.get(spec)
        except DataError:
            return False
        return record is not None and record.status != FAILED

    def _marker(self, spec: RunSpec) -> Path:
        return self.path(spec).with_name("record.json.stale")


def gather(store: RunStore, specs: Sequence[RunSpec]) -> list[RunRecord]:
    """Return the records there are of these specs, in the order of their cells."""
    check_unique(specs)
    found = (store.get(spec) for spec in specs)
    return sort_records(record for record in found if record is not None)


def sort_records(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Return records ordered by experiment, tier, block, row, column, replicate."""
    return sorted(records, key=lambda record: record.spec.cell)


def jsonl(records: Iterable[RunRecord]) -> str:
    """Return records as canonical JSON, sorted, one per line.

    Raises:
        ConfigError: if two records fill the same place.
    """
    ordered = sort_records(records)
    check_unique(record.spec for record in ordered)
    return "".join(f"{record.to_json()}\n" for record in ordered)


def write_jsonl(path: str | Path, records: Iterable[RunRecord]) -> None:
    """Write `jsonl` of these records atomically.

    Raises:
        ConfigError: if two records fill the same place.
    """
    write_atomically(Path(path), jsonl(records).encode())


def read_jsonl(path: str | Path) -> list[RunRecord]:
    """Read what `write_jsonl` wrote.

    Raises:
        DataError: if the file is missing, a line is no record, or two lines fill the
            same place; the message names file and line.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except FileNotFoundError as error:
        raise DataError(f"expected records in {path}, and there is no such file") from (
            error
        )
    records: dict[tuple[str, str, str, str, str, int], RunRecord] = {}
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        try:
            record = RunRecord.from_json(line)
        except DataError as error:
            raise DataError(
                f"{path} line {number}: {error}; restore it with git, or delete it and "
                "have `./reproduce.sh report` write it again"
            ) from error
        if record.spec.cell in records:
            raise DataError(f"{path} line {number}: a second record of one run")
        records[record.spec.cell] = record
    return list(records.values())

"""What happened: records of runs, the run store, and the lines kept in git."""

import json
import math
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.paths import write_atomically
from benchmarks.specs import RunSpec, canonical, check_unique
from metricopt.errors import ConfigError, DataError

STATUSES = ("done", "diverged", "failed")
TRACE_KEYS = {"step", "queries", "observe", "test"}

VALUE_FUNCTION = "value function"
"""Name of the seconds that its training took."""


@dataclass(frozen=True)
class RunRecord:
    """What happened in one run. Non-finite numbers become `None` (null in JSON).

    Attributes:
        spec: what was run.
        status: `done`, `diverged` or `failed`.
        message: why it is not done; empty if it is.
        data: `variant` and `digest` of the data set.
        environment: versions, device, commit.
        seeds: the seeds used, by purpose.
        queries: metric queries charged to one row, shared ones included.
        shared_queries: the part of `queries` spent once for all rows.
        gradient_steps: fine-tuning steps taken by one row.
        seconds: wall seconds in `total`, and what the training of the value function
            took that the run uses, in its own total or in that of another run.
        trace: the way there: dictionaries of `step`, `queries`, `observe` ([R] or
            None) and `test` ([R]), in native metric units.
        observe: final metric on the observe split, one per meta-test, shape [R].
        test: final metric on the test split, one per meta-test, shape [R].
        notes: further figures by name, each a number or a list of numbers.

    Raises:
        ConfigError: if the status is unknown, a trace entry lacks a key, or a value is
            not JSON-able.
    """

    spec: RunSpec
    status: str
    message: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    queries: int = 0
    shared_queries: int = 0
    gradient_steps: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    trace: Sequence[Mapping[str, Any]] = ()
    observe: Sequence[float | None] = ()
    test: Sequence[float | None] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ConfigError(
                f"status must be one of {', '.join(STATUSES)}, got {self.status!r}"
            )
        for entry in self.trace:
            if set(entry) != TRACE_KEYS:
                raise ConfigError(
                    f"a trace entry needs {', '.join(sorted(TRACE_KEYS))}, "
                    f"got {', '.join(sorted(entry))}"
                )
        for item in fields(self)[1:]:
            value = json.loads(canonical(_finite(getattr(self, item.name))))
            object.__setattr__(self, item.name, value)

    @property
    def finished(self) -> bool:
        """Whether the run is done with a finite test value for every meta-test."""
        complete = bool(self.test) and all(value is not None for value in self.test)
        return self.status == "done" and complete

    @property
    def total_seconds(self) -> float:
        """Seconds of the run: those recorded in all, or the sum of its phases."""
        return self.seconds.get("total") or sum(self.seconds.values())

    def to_json(self) -> str:
        """Return the canonical JSON text, one line, with the digest of the spec."""
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        content["spec"] = {**asdict(self.spec), "digest": self.spec.digest}
        return canonical(content)

    @classmethod
    def from_json(cls, text: str) -> "RunRecord":
        """Read what `to_json` wrote.

        Raises:
            DataError: if the text is no complete record; `SpecMismatchError` if its
                spec is not the one its digest was made from.
        """
        try:
            content = json.loads(text, parse_constant=_reject)
            missing = {item.name for item in fields(cls)} ^ set(content)
            if missing:
                raise DataError(
                    f"a record must have exactly its own fields; "
                    f"missing or unknown: {', '.join(sorted(missing))}"
                )
            stored = content.pop("spec")
            digest = stored.pop("digest")
            record = cls(spec=RunSpec(**stored), **content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"no complete record: {error}") from error
        if record.spec.digest != digest:
            raise SpecMismatchError(
                f"its spec has the digest {record.spec.digest[:8]}, "
                f"and it was written for {digest[:8]}"
            )
        return record


class SpecMismatchError(DataError):
    """A record belongs to another spec than the one it is filed under."""


class RunStore:
    """One folder per run; a run is complete when its `record.json` exists.

    Several processes may use one store: a record appears whole, by a rename.

    Args:
        root: folder of the store; made by the first write.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def ensure_writable(self) -> None:
        """Make the folder and write to it, before any work is done.

        Raises:
            ConfigError: if that fails.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise ConfigError(
                f"the run store {self.root} must be a writable folder: {error.strerror}"
            ) from error

    def path(self, spec: RunSpec) -> Path:
        """Return where the record of a spec lies or will lie."""
        return self.root / spec.folder / "record.json"

    def get(self, spec: RunSpec) -> RunRecord | None:
        """Return the record of a spec, or None if it has not been run.

        A torn record counts as none: a warning names it, and it is moved aside.

        Raises:
            SpecMismatchError: if the record was written for another spec.
        """
        path = self.path(spec)
        try:
            record = RunRecord.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except SpecMismatchError as error:
            raise SpecMismatchError(f"the record {path} was changed: {error}") from None
        except (DataError, UnicodeDecodeError) as error:
            _move_aside(path, error)
            return None
        if record.spec.digest != spec.digest:
            raise SpecMismatchError(
                f"the record {path} is of run {record.spec.digest[:12]}, "
                f"expected {spec.digest[:12]}"
            )
        return record

    def put(self, record: RunRecord) -> Path:
        """Write a record atomically and return its path."""
        path = self.path(record.spec)
        write_atomically(path, f"{record.to_json()}\n".encode())
        return path


def gather(store: RunStore, specs: Sequence[RunSpec]) -> list[RunRecord]:
    """Return the records there are of these specs, in the order of their cells."""
    check_unique(specs)
    found = (store.get(spec) for spec in specs)
    return sort_records(record for record in found if record is not None)


def sort_records(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Return records ordered by experiment, tier, block, row, column, replicate."""
    return sorted(records, key=lambda record: record.spec.cell)


def write_jsonl(path: str | Path, records: Iterable[RunRecord]) -> None:
    """Write records canonically, sorted, one per line, atomically.

    Raises:
        ConfigError: if two records fill the same place.
    """
    ordered = sort_records(records)
    check_unique(record.spec for record in ordered)
    text = "".join(f"{record.to_json()}\n" for record in ordered)
    write_atomically(Path(path), text.encode())


def read_jsonl(path: str | Path) -> list[RunRecord]:
    """Read what `write_jsonl` wrote.

    Raises:
        DataError: if the file is missing, a line is no record, or two lines fill the
            same place; the message names file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"expected records in {path}, and there is no such file")
    records: dict[tuple[str, str, str, str, str, int], RunRecord] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                record = RunRecord.from_json(line)
            except DataError as error:
                raise DataError(f"{path} line {number}: {error}") from error
            if record.spec.cell in records:
                raise DataError(f"{path} line {number}: a second record of one run")
            records[record.spec.cell] = record
    return list(records.values())


def _finite(value: Any) -> Any:
    """Replace every non-finite number inside a value by None."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _reject(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON number")


def _move_aside(path: Path, error: Exception) -> None:
    """Keep a torn record for the curious; another process may have been faster."""
    try:
        os.replace(path, path.with_name("record.json.torn"))
    except FileNotFoundError:
        return
    warnings.warn(
        f"the record {path} is torn and counts as not run ({error}); "
        f"it was moved to record.json.torn",
        stacklevel=3,
    )

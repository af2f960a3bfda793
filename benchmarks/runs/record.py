"""What happened in a run: its record, as Python and as one line of JSON."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from benchmarks.runs.codec import (
    SHORT,
    Count,
    canonical,
    content_digest,
    decode,
)
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError, DataError

SCHEMA = 3
"""Schema of records, the one that is written and read."""
BROKEN = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Errors of JSON that is none, or that is no record."""
FIELD = "digest"
"""Name of the field that holds the digest of all the others."""
FAILED = "failed"
"""Status of a run that an error ended: nothing was measured."""
STATUSES = ("done", "diverged", FAILED)
QUERIED = ("observe", "train", "test")
NONE_MADE = Count(0)
VOLATILE = ("seconds", "environment")
"""Fields that differ when the same run is made again."""

DIGITS = 6
"""Decimals kept of metric values."""
VALUE_FUNCTION = "value function"
"""Name of the seconds that its training took."""
META_TRAINING = "meta-training"
"""Name of the seconds that it took, whether in this run or before."""
NETWORK = "network"
"""Name of the seconds that a method took to train the network of a run."""
PROPOSAL_RECALL = "proposal recall"
"""Name, in the data of a run on a detector, of the recall of its proposals."""

Values = Mapping[str, Sequence[float | None]]
"""One value per meta-test by metric, in native units; None for a non-finite one."""


class AlteredError(DataError):
    """A record does not have the content that its digest was made of."""


class SchemaError(DataError):
    """A record has a schema that this code does not read."""


class SpecMismatchError(DataError):
    """A record belongs to another spec than the one it is filed under."""


@dataclass(frozen=True)
class TracePoint:
    """A state a run passed through.

    Attributes:
        step: gradient steps taken so far.
        queries: metric queries charged to one row so far.
        observe: metrics on the observe split; empty if they were not observed.
        test: metrics on the test split.
    """

    step: Count
    queries: Count
    observe: Values = field(default_factory=dict)
    test: Values = field(default_factory=dict)

    def __post_init__(self) -> None:
        _normalise(self, [item.name for item in fields(self)])


@dataclass(frozen=True)
class RunRecord:
    """What happened in one run. Non-finite numbers become `None` (null in JSON).

    Attributes:
        spec: what was run.
        status: `done`, `diverged` or `failed`.
        message: why it is not done; empty if it is.
        data: `variant` and `digest` of the data set, and what is known of the
            pre-trained network: `theta`, and more for some.
        environment: versions, device, commit.
        seeds: the seeds used, by purpose.
        queries: metric queries charged to one row, shared ones included.
        shared_queries: the part of `queries` spent once for all rows.
        queried: all metric evaluations of the run by the split they were made on:
            `observe`, `train` or `test`. Judging the result is not among them.
        gradient_steps: fine-tuning steps taken by one row, and those of the network
            if a method trained it.
        seconds: wall seconds: `total`, and what training the value function took,
            whether in this run or in the one it was shared from; `network`, if a
            method trained the network before the run.
        trace: the way there.
        observe: final metrics on the observe split, R values each: the meta-tests of
            the first value function, then those of the next.
        test: final metrics on the test split, likewise.
        notes: further figures by name, each a number or a list of numbers.

    Raises:
        ConfigError: if the status is unknown, a metric is not one of the spec's, or a
            value is not JSON-able.
    """

    spec: RunSpec
    status: str
    message: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    queries: Count = NONE_MADE
    shared_queries: Count = NONE_MADE
    queried: Mapping[str, Count] = field(default_factory=dict)
    gradient_steps: Count = NONE_MADE
    seconds: Mapping[str, float] = field(default_factory=dict)
    trace: tuple[TracePoint, ...] = ()
    observe: Values = field(default_factory=dict)
    test: Values = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _one_of("status", STATUSES, [self.status])
        _one_of("queried", QUERIED, self.queried)
        labels = [unit.label for unit in self.spec.metrics]
        object.__setattr__(self, "trace", tuple(self.trace))
        _check_metrics(self, labels)
        for point in self.trace:
            _check_metrics(point, labels)
        plain = [item.name for item in fields(self)]
        _normalise(self, [name for name in plain if name not in ("spec", "trace")])

    @property
    def finished(self) -> bool:
        """Whether the run is done with a finite test value for every meta-test."""
        test = self.values("test")
        complete = bool(test) and all(value is not None for value in test)
        return self.status == "done" and complete

    @property
    def total_seconds(self) -> float:
        """Seconds of the run: those recorded in all, or the sum of its phases."""
        return self.seconds.get("total") or sum(self.seconds.values())

    def values(
        self, split: Literal["observe", "test"], metric: str | None = None
    ) -> list[float | None]:
        """Return the final values of a metric, one per meta-test; empty if unknown.

        Args:
            split: which values.
            metric: label of the metric; None for the run's own.
        """
        found: Values = getattr(self, split)
        return list(found.get(metric or self.spec.metric.label, ()))

    @cached_property
    def digest(self) -> str:
        """Identity of everything in the record."""
        return content_digest(self._content())

    @cached_property
    def outcome_digest(self) -> str:
        """Identity of what the same run gives again: all but time and machine."""
        content = self._content()
        return content_digest({k: v for k, v in content.items() if k not in VOLATILE})

    def to_json(self) -> str:
        """Return the canonical JSON text, one line, with the digest of all of it."""
        return canonical(self._content() | {FIELD: self.digest})

    def _content(self) -> dict[str, Any]:
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        content["trace"] = [vars(point) for point in self.trace]
        content["spec"] = {**self.spec.content, FIELD: self.spec.digest}
        return {"schema": SCHEMA, **content}

    @classmethod
    def from_json(cls, text: str) -> "RunRecord":
        """Read what `to_json` wrote.

        Raises:
            DataError: if the text is no complete record; `SchemaError` if it is of
                another schema; `SpecMismatchError` if its spec is not the one its
                digest was made from; `AlteredError` if anything else was changed.
        """
        try:
            content = json.loads(text, parse_constant=_reject)
            schema = content.get("schema")
            if type(schema) is not int or schema != SCHEMA:
                raise SchemaError(
                    f"the record has schema {schema!r}, and this code reads schema "
                    f"{SCHEMA} alone; read it with the version that wrote it"
                )
            _check_complete(content)
            written = content.pop(FIELD)
            # 1e999 is read as infinite, and half a surrogate pair cannot be written.
            canonical(written).encode()
            found = content_digest(content)
            own = {k: v for k, v in content.items() if k != "schema"}
            spec = dict(content["spec"])
            digest = spec.pop(FIELD)
            if not isinstance(digest, str):
                raise TypeError("a record must have the digest of its spec")
            record = decode(cls, own | {"spec": spec})
        except SchemaError:
            raise
        except (*BROKEN, ConfigError) as error:
            raise DataError(f"not a complete record: {error}") from error
        if record.spec.digest != digest:
            raise SpecMismatchError(
                f"the record was written for the spec {digest[:8]}, "
                f"but holds the spec {record.spec.digest[:8]}"
            )
        if written != found:
            raise AlteredError(
                f"the record was altered: its content has the digest {found[:SHORT]}, "
                f"but it was written with {str(written)[:SHORT]}"
            )
        return record


def _check_complete(content: Mapping[str, Any]) -> None:
    """Check that no field is missing, as one with a default could be."""
    parts = [("a record", RunRecord, content)]
    parts += [
        ("a trace point", TracePoint, point) for point in content.get("trace", ())
    ]
    for what, kind, part in parts:
        missing = {item.name for item in fields(kind)} - part.keys()
        if missing:
            raise DataError(f"{what} lacks {', '.join(sorted(missing))}")
    if FIELD not in content:
        raise DataError(f"a record lacks {FIELD}")


def _one_of(what: str, known: Sequence[str], found: Collection[str]) -> None:
    for name in found:
        if name not in known:
            raise ConfigError(f"{what} must be one of {', '.join(known)}, got {name!r}")


def _check_metrics(part: RunRecord | TracePoint, labels: Sequence[str]) -> None:
    _one_of("a metric of the record", labels, {*part.observe, *part.test})


def _normalise(part: object, names: Sequence[str]) -> None:
    """Replace fields by what JSON would give back."""
    values = _finite({name: getattr(part, name) for name in names})
    for name, value in json.loads(canonical(values)).items():
        object.__setattr__(part, name, value)


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

"""Torn, damaged and foreign checkpoints, full disks, and what a checkpoint compares."""

import ast
import copy
import errno
import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from sklearn.metrics import f1_score
from torch import nn
from torchvision.ops import nms

from metricopt import ConfigError, DataError, MetricError
from metricopt.detection.detections import Kept
from metricopt.errors import MetricOptError
from metricopt.journal.journal import Journal
from metricopt.journal.run_facts import _packages_of, digest
from metricopt.metrics.detection import DetectionMetric
from metricopt.reading.callables import make_metric
from tests.robustness.checkpoint_calls import QUERIES, Judge, call, told
from tests.source_tree import ROOT


@pytest.mark.parametrize("kept", [0, 1, 30, 60, -1])
def test_a_torn_last_line_is_asked_again(
    queries_file: Path, finished_call: tuple[bytes, dict], kept: int
) -> None:
    whole, last, _ = finished_call[0].rpartition(
        finished_call[0].splitlines(keepends=True)[-1]
    )
    queries_file.write_bytes(whole + last[:kept])
    metric = Judge()
    assert told(call(metric=metric, checkpoint=queries_file)) == finished_call[1]
    assert metric.asked == 1
    assert queries_file.read_bytes() == finished_call[0]


@pytest.mark.parametrize("kept", [0, 5, 22, 23, 40, 300])
def test_a_torn_heading_begins_anew(
    queries_file: Path, finished_call: tuple[bytes, dict], kept: int
) -> None:
    queries_file.write_bytes(finished_call[0][:kept])
    assert told(call(checkpoint=queries_file)) == finished_call[1]
    assert queries_file.read_bytes() == finished_call[0]


def changed(lines: list[bytes]) -> list[bytes]:
    """Change one digit of a value."""
    at = lines[4].rindex(b".") + 1
    digit = b"1" if lines[4][at : at + 1] != b"1" else b"2"
    return [*lines[:4], lines[4][:at] + digit + lines[4][at + 1 :], *lines[5:]]


DAMAGES: dict[str, tuple[int, Callable[[list[bytes]], list[bytes]]]] = {
    "changed value": (5, changed),
    "lost line": (4, lambda lines: lines[:3] + lines[4:]),
    "swapped lines": (3, lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]]),
    "doubled line": (4, lambda lines: lines[:3] + lines[2:]),
    "empty line": (3, lambda lines: [*lines[:2], b"\n", *lines[2:]]),
    "invalid UTF-8": (6, lambda lines: [*lines[:5], b"\xff\xfe\n", *lines[6:]]),
    "zeros": (7, lambda lines: [*lines[:6], bytes(80) + b"\n", *lines[7:]]),
    "deep nesting": (3, lambda lines: [*lines[:2], b"[" * 10**5 + b"\n", *lines[3:]]),
    "changed heading": (
        1,
        lambda lines: [lines[0].replace(b'"seed": "0"', b'"seed": "1"'), *lines[1:]],
    ),
    "damaged end": (QUERIES + 1, lambda lines: [*lines[:-1], b"x" + lines[-1]]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_refused(
    queries_file: Path, finished_call: tuple[bytes, dict], damage: str
) -> None:
    number, change = DAMAGES[damage]
    raw = b"".join(change(finished_call[0].splitlines(keepends=True)))
    assert raw != finished_call[0]
    queries_file.write_bytes(raw)
    metric = Judge()
    told = f"line {number} of the checkpoint {queries_file} is damaged: put a copy"
    with pytest.raises(DataError, match=told):
        call(metric=metric, checkpoint=queries_file)
    assert metric.asked == 0
    assert queries_file.read_bytes() == raw


@pytest.mark.parametrize(
    "raw", [b"weights", b"a,b\n1,2\n", b"\x00" * 9000, b"metricopt-checkpoint-2 x\n"]
)
def test_a_file_of_something_else_is_left_alone(queries_file: Path, raw: bytes) -> None:
    queries_file.write_bytes(raw)
    with pytest.raises(DataError, match="is no checkpoint of finetune: give the name"):
        call(checkpoint=queries_file)
    assert queries_file.read_bytes() == raw


def test_a_huge_file_is_not_read(queries_file: Path) -> None:
    with queries_file.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(DataError, match="is no checkpoint of finetune"):
        call(checkpoint=queries_file)


@pytest.mark.parametrize("written", [0, 20])
def test_a_full_disk_costs_one_answer(
    queries_file: Path,
    finished_call: tuple[bytes, dict],
    written: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write, calls = os.write, []

    def full(file: int, content: bytes) -> int:
        calls.append(content)
        if len(calls) == 6:
            return write(file, content[:written])
        if len(calls) > 6:
            raise OSError(28, "No space left on device")
        return write(file, content)

    with monkeypatch.context() as patch:
        patch.setattr("metricopt.journal.journal.os.write", full)
        with pytest.raises(
            ConfigError, match=r"the answer 0.* could not be w"
        ) as caught:
            call(checkpoint=queries_file)
    assert "No space left on device; mend this and call again" in str(caught.value)
    assert caught.value.partial.spent.queries == 5
    metric = Judge()
    assert told(call(metric=metric, checkpoint=queries_file)) == finished_call[1]
    assert metric.asked == QUERIES - 5
    assert queries_file.read_bytes() == finished_call[0]


def test_names_that_are_no_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path, tmp_path / "file" / "below", "a\0b", "/dev/full"):
        with pytest.raises(
            ConfigError, match=r"the checkpoint .* (cannot be opened|must be a r)"
        ):
            call(checkpoint=name)
    with pytest.raises(ConfigError, match="pipe must be a regular file"):
        call(checkpoint=tmp_path / "pipe")
    with pytest.raises(ConfigError, match="checkpoint must be the name of a file or"):
        call(checkpoint=7)
    found = call(checkpoint=tmp_path / "new" / "folder" / "file")
    assert (tmp_path / "new" / "folder" / "file").stat().st_size > 1000
    assert found.spent.queries == QUERIES
    monkeypatch.setenv("HOME", str(tmp_path))
    call(checkpoint="~/queries.txt")
    assert (tmp_path / "queries.txt").is_file()


def test_a_file_that_cannot_be_locked_is_refused(
    queries_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system without locks, or where Python can lock no files."""

    def refused(file: int, *, blocking: bool) -> bool:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("metricopt.journal.journal.lock_descriptor", refused)
    metric = Judge()
    with pytest.raises(ConfigError, match="cannot be locked: Function not implemented"):
        call(metric=metric, checkpoint=queries_file)
    assert metric.asked == 0


def test_the_library_imports_no_module_that_windows_lacks() -> None:
    """Locks are those of filelock, which knows what each system has."""
    lacking = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
    imported = {
        name
        for path in (ROOT / "metricopt").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [*(part.name for part in node.names), getattr(node, "module", "")]
    }
    assert {"filelock", "os"} <= imported
    assert not imported & lacking


@pytest.mark.parametrize(
    ("kind", "kept"),
    [(ConfigError, ConfigError), (DataError, DataError), (MetricOptError, MetricError)],
)
def test_a_survived_failure_has_the_class_it_had(
    queries_file: Path, kind: type[MetricOptError], kept: type[MetricOptError]
) -> None:
    def fails() -> float:
        raise kind("no")

    with Journal(queries_file, {}) as journal:
        with pytest.raises(kind, match="no"):
            journal.answer("q", fails)
        journal.answer("r", lambda: 0.1 + 0.2)
    with Journal(queries_file, {}) as journal:
        with pytest.raises(kept, match="no"):
            journal.answer("q", fails)
        assert journal.answer("r", fails) == 0.1 + 0.2
        assert journal.replayed == 2


class Of:
    """Holds what it is given, under the same name or a private one."""

    def __init__(self, given: object, parent: object = None) -> None:
        self._given, self.parent = given, parent


class Slotted:
    __slots__ = ("given",)

    def __init__(self, given: object) -> None:
        self.given = given


class Wrapped(nn.Module):
    def __init__(self, given: nn.Module) -> None:
        super().__init__()
        self.given = given


def family(ages: list[float]) -> Of:
    """Parents who hold their children, who know them."""
    parent = Of([])
    parent._given = [Of(age, parent) for age in ages]
    return parent


def test_a_digest_tells_values_apart_wherever_they_are() -> None:
    one = torch.arange(6.0)
    nested = {"ids": one, "mask": (one > 2, [one.int()]), "name": "a"}
    alike = {"ids": one.clone(), "mask": (one > 2, [one.int()]), "name": "a"}
    assert digest(nested) == digest(alike)
    others = [
        nested | {"ids": one + 1e-6},
        nested | {"ids": one.double()},
        nested | {"ids": one.view(2, 3)},
        nested | {"mask": (one > 3, [one.int()])},
        nested | {"name": "b"},
        {"ids": one},
        [nested],
        one.numpy(),
        one.numpy().astype("float64"),
        partial(f1_score, average="macro"),
        partial(f1_score, average="micro"),
        nn.CrossEntropyLoss(weight=one),
        nn.CrossEntropyLoss(weight=one + 1),
        Judge,
        Judge.__call__,
    ]
    assert len({digest(other) for other in [nested, *others]}) == len(others) + 1


OBJECTS: dict[str, tuple[object, object]] = {
    "paths": (Path("a"), Path("b")),
    "decimals": (Decimal("0.1"), Decimal("0.2")),
    "dates": (date(2021, 6, 19), date(2021, 6, 20)),
    "complex": (1j, 2j),
    "sets": ({Of(1.0), Of(2.0), Of(3.0)}, {Of(1.0), Of(2.0), Of(4.0)}),
    "modules": (Wrapped(nn.ReLU()), Wrapped(nn.Tanh())),
    "families": (family([1.0] * 9), family([1.0] * 8 + [2.0])),
    "averages": (
        make_metric(partial(f1_score, average="macro")),
        make_metric(partial(f1_score, average="micro")),
    ),
    "kept": (
        DetectionMetric(f1_score, kept=Kept(0.1)),
        DetectionMetric(f1_score, kept=Kept(0.2)),
    ),
}


@pytest.mark.parametrize("kind", [Of, Slotted, lambda given: {"given": given}])
@pytest.mark.parametrize("name", OBJECTS)
def test_a_digest_tells_what_objects_hold(
    kind: Callable[[object], object], name: str
) -> None:
    one, another = OBJECTS[name]
    assert digest(kind(one)) == digest(kind(copy.deepcopy(one)))
    assert digest(kind(one)) != digest(kind(another))


def test_a_digest_knows_no_order_where_there_is_none() -> None:
    assert digest({"a": 1, "b": 2.0}) == digest({"b": 2.0, "a": 1})
    ages = [float(age) for age in range(20)]
    # Sets of objects have the order of their addresses.
    assert digest({*map(Of, ages)}) == digest({*map(Of, reversed(ages))})


def test_versions_are_those_of_what_is_used(queries_file: Path) -> None:
    used = (AccuracyCalculator(), partial(partial(nms, 1), 2), partial(f1_score))
    assert _packages_of(*used, None, "mcr") == ["pytorch-metric-learning"]
    call(checkpoint=queries_file)
    assert b"version of torchmetrics" in queries_file.read_bytes()
    assert b"version of timm" not in queries_file.read_bytes()
    queries_file.unlink()
    metric = Judge()
    metric.__module__ = "timm.utils"
    call(metric=metric, checkpoint=queries_file)
    assert b"version of timm" in queries_file.read_bytes()

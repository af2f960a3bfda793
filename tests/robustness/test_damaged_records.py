"""Records that are damaged, or measured anew: each stays until there is another."""

import os
import signal
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.cli.verbs import listing
from benchmarks.cli.verbs import plan as _plan  # noqa: F401 - before its parts are stood in for
from benchmarks.report.page import terminal_page
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import RunStore, read_jsonl, write_jsonl
from benchmarks.tables.registry import find_experiment
from metricopt.errors import DataError
from tests.benchmarks.cli.toy_suite import install, run
from tests.benchmarks.runs.record_cases import make_record, make_spec, make_trace
from tests.robustness.hostile import LONGEST

POINTS = make_trace("f1", (1, 2, [0.5], [0.5]))
LINE = make_record(make_spec(), trace=POINTS).to_json().encode()


def changed(before, after):
    assert before in LINE
    return LINE.replace(before, after, 1)


DAMAGED = {
    "empty": b"",
    "a blank line": b"\n",
    "zeros": b"\0" * 100,
    "torn": LINE[: len(LINE) // 2],
    "no UTF-8": changed(b"done", b"d\xffne"),
    "another encoding": LINE.decode().encode("utf-16"),
    "deep": b"[" * 100_000,
    "deep, and closed": changed(
        b'"notes":{}', b'"notes":{"a":%b}' % (b"[" * 900 + b"]" * 900)
    ),
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "no spec": b'{"schema":3}',
    "an overflow": changed(b"[0.5]", b"[1e999]"),
    "an overflow in a note": changed(b'"notes":{}', b'"notes":{"a":-1e999}'),
    "a whole number of 400 digits": changed(b"[0.5]", b"[1%b]" % (b"0" * 400)),
    "a number of 5,000 digits": changed(b"[0.5]", b"[1%b]" % (b"0" * 5_000)),
    "half a pair": changed(b'"message":""', b'"message":"\\ud800"'),
    "a text for a number": changed(b'"queries":0', b'"queries":"0"'),
    "true for a number": changed(b'"queries":0', b'"queries":true'),
    "a negative count": changed(b'"queries":0', b'"queries":-1'),
    "a list for a text": changed(b'"message":""', b'"message":[]'),
    "a text for numbers": changed(b"[0.5]", b'"0.5"'),
    "texts for numbers": changed(b"[0.5]", b'["0.5"]'),
    "a list for names": changed(b'"seconds":{}', b'"seconds":[]'),
    "texts for seconds": changed(b'"seconds":{}', b'"seconds":{"total":"1"}'),
    "a number for a variant": changed(b'"data":{}', b'"data":{"variant":1}'),
    "a number for a trace": LINE[: LINE.index(b'"trace"')] + b'"trace":1}',
    "a number for a point": LINE[: LINE.index(b'"trace"')] + b'"trace":[1]}',
    "a text for a step": changed(b'"step":1', b'"step":"1"'),
    "a number for a digest": changed(
        b'"digest":"%b"' % make_spec().digest.encode(), b'"digest":1'
    ),
}


def told(error):
    """Check that an error is one sentence, and return it."""
    text = str(error)
    assert text.isprintable() and len(text) < LONGEST
    return text


def test_the_line_that_is_damaged_is_sound():
    assert RunRecord.from_json(LINE.decode()).to_json().encode() == LINE


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_record_or_line_is_named_and_stays(tmp_path, name):
    store, lines = RunStore(tmp_path), tmp_path / "records.jsonl"
    path = store.path(make_spec())
    path.parent.mkdir(parents=True)
    path.write_bytes(DAMAGED[name])
    with pytest.raises(DataError) as caught:
        store.get(make_spec())
    text = told(caught.value)
    assert text.startswith(f"the record {path} ")
    assert "delete it" in text
    assert path.read_bytes() == DAMAGED[name]
    lines.write_bytes(LINE + b"\n" + DAMAGED[name] + b"\n")
    with pytest.raises(DataError) as caught:
        read_jsonl(lines)
    assert told(caught.value).startswith(f"{lines} ")


@pytest.fixture
def suite(tmp_path, monkeypatch):
    suite = install(monkeypatch, tmp_path)
    monkeypatch.setattr(listing, "ROOT", suite.checkout)
    return suite


def refusal(capsys, *arguments, code=2):
    """Return what a command prints besides, which is one sentence."""
    assert main(arguments) == code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
    (line,) = (shown.err if code == 2 else shown.out).splitlines()[:1]
    assert code != 2 or len(shown.err.splitlines()) == 1  # else of how far it is
    return told(line)


def specs():
    return find_experiment("table3").specs("local", None, True)


@pytest.mark.parametrize("name", ["torn", "no UTF-8", "deep", "texts for seconds"])
def test_every_verb_names_damaged_lines_of_a_report(suite, capsys, name):
    run("table3")
    capsys.readouterr()
    ran = len(suite.ran)
    path = suite.checkout / "results" / "table3" / "local" / "records.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(LINE + b"\n" + DAMAGED[name] + b"\n")
    for verb in ("table3", "report", "plan", "list"):
        arguments = {"report": ["table3"], "plan": ["table3"], "list": ["methods"]}
        text = refusal(capsys, verb, *arguments.get(verb, []))
        assert text.startswith(f"error: {path} ")
        assert "restore it with git" in text or "UTF-8" in text
    assert refusal(capsys, "verify", "table3", code=1).startswith(f"{path} ")
    assert len(suite.ran) == ran


def test_every_verb_names_a_damaged_record_before_anything_runs(suite, capsys):
    run("all")
    path = suite.store.path(specs()[-1])
    path.write_bytes(b"\xff")
    capsys.readouterr()
    for arguments in (["all"], ["table3"], ["report", "table3"], ["plan", "table3"]):
        text = refusal(capsys, *arguments)
        assert text.startswith(f"error: the record {path} is damaged: ")
    # `all` begins with another table, which was not begun.
    assert [len(ran) for ran in suite.ran] == [4, 4]
    run("table3", "--fresh")
    assert suite.calls(specs()[-1]) == 3


def test_a_folder_and_a_pipe_in_the_place_of_records_are_named(suite, capsys):
    run("table3")
    capsys.readouterr()
    path = suite.store.path(specs()[0])
    path.unlink()
    path.mkdir()
    assert "must be a file, got a folder" in refusal(capsys, "table3")
    path.rmdir()
    os.mkfifo(path)
    assert "got a device or a pipe" in refusal(capsys, "table3")


@pytest.mark.parametrize("content", [b"\xff", b"", LINE[:50]])
def test_a_damaged_report_of_the_user_is_written_again(suite, content):
    run("table3")
    folder = suite.checkout / "results" / "own" / "table3" / "local"
    sound = (folder / "records.jsonl").read_bytes()
    (folder / "records.jsonl").write_bytes(content)
    run("table3")
    assert (folder / "records.jsonl").read_bytes() == sound
    (folder / "table.md").unlink()
    run("table3")
    assert (folder / "table.md").is_file()
    assert len(suite.reports) == 3


def test_a_damaged_page_is_named(tmp_path):
    (tmp_path / "table.md").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"table\.md must be a text .* writes it again"):
        terminal_page(tmp_path)


def test_lines_may_hold_any_text(tmp_path):
    record = make_record(make_spec(), message="one\u2028line\x85\x0c")
    write_jsonl(tmp_path / "records.jsonl", [record])
    assert read_jsonl(tmp_path / "records.jsonl") == [record]


SPEC = make_spec()
FAILED = make_record(SPEC, (), status="failed", message="no data")


def files(path):
    return sorted(each.name for each in path.parent.iterdir())


@pytest.mark.parametrize("status", ["done", "diverged"])
def test_a_failed_run_does_not_replace_a_measured_record(tmp_path, status):
    store = RunStore(tmp_path)
    old = make_record(SPEC, status=status)
    path = store.put(old)
    store.mark_stale([SPEC])
    beside = store.put(FAILED)
    assert store.get(SPEC) == old
    assert "no data" in beside.read_text()
    assert store.stale([SPEC]) == [SPEC]
    store.put(make_record(SPEC, [0.25]))
    assert store.get(SPEC).values("test") == [0.25]
    assert files(path) == ["record.json"]


def test_a_failed_run_replaces_none_and_one_that_failed(tmp_path):
    store = RunStore(tmp_path)
    for message in ("no data", "no weights"):
        failed = make_record(SPEC, (), status="failed", message=message)
        path = store.put(failed)
        assert store.get(SPEC) == failed
    assert files(path) == ["record.json"]


def test_failed_repetitions_are_told_and_tried_again(suite, capsys, monkeypatch):
    run("table3")
    first, *others = specs()

    def half(specs, store, *, workers, redo=()):
        store.put(make_record(first, seeds={"call": 2}))
        for spec in others:
            store.put(make_record(spec, (), status="failed", message="no data"))
        return list(specs)

    with monkeypatch.context() as patch:
        runner = sys.modules["benchmarks.execution.runner"]
        patch.setattr(runner, "run_all", half)
        capsys.readouterr()
        run("table3", "--fresh")
    assert capsys.readouterr().err == (
        "3 of 4 repeated runs failed: their old records are used, --fresh tries them "
        f"again, and {suite.store.path(others[0])}.failed says why\n"
    )
    assert [suite.calls(spec) for spec in specs()] == [2, 1, 1, 1]
    run("table3", "--fresh")
    assert suite.ran[-1] == others
    assert suite.store.stale(specs()) == []


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, DataError("no data"), MemoryError]
)
@pytest.mark.parametrize("verb", ["quick", "table3", "all"])
def test_whatever_ends_the_preparation_keeps_all_records(
    suite, monkeypatch, verb, error
):
    run(verb)
    records = {
        path: path.read_bytes() for path in suite.store.root.rglob("record.json")
    }

    def broken(specs):
        raise error

    module = sys.modules["benchmarks.execution.networks"]
    monkeypatch.setattr(module, "prepare", broken)
    with nullcontext() if error is not MemoryError else pytest.raises(MemoryError):
        assert main([verb, "--fresh"]) == (130 if error is KeyboardInterrupt else 2)
    assert {path: path.read_bytes() for path in records} == records


def test_marks_are_set_for_all_records_or_none(tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    several = [make_spec(replicate=number) for number in range(4)]
    for spec in several:
        store.put(make_record(spec))
    touch = Path.touch

    def full(path, *arguments, **options):
        if path.parent == store.path(several[2]).parent:
            raise OSError(28, "No space left on device", str(path))
        touch(path, *arguments, **options)

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(OSError, match="No space"):
        store.mark_stale(several)
    assert store.stale(several) == []


def killed(*names):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["fsync", "replace", "unlink"])
def test_a_kill_in_the_middle_of_a_write_leaves_a_whole_record(tmp_path, moment):
    store = RunStore(tmp_path)
    store.put(make_record(SPEC, [0.5]))
    store.mark_stale([SPEC])
    with warnings.catch_warnings():
        # Newer versions warn of forks; the child writes one file.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        setattr(os, moment, killed)
        store.put(make_record(SPEC, [0.25]))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    # The mark goes after the record has come.
    found = 0.25 if moment == "unlink" else 0.5
    assert store.get(SPEC).values("test") == [found]
    assert store.stale([SPEC]) == [SPEC]

"""What a wrong command is answered: one sentence, with the nearest name."""

import subprocess
import sys

import pytest

from benchmarks.__main__ import main
from benchmarks.cli.parser import UsageError, check_name, make_parser
from benchmarks.runs.paths import ROOT, TIERS


def answer(capsys, *arguments):
    """Return the one sentence a wrong command ends with."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert captured.out == ""
    return lines[0].removeprefix("error: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("tabel3",), "unknown verb 'tabel3'; did you mean 'table3'? "),
        (("Doctor",), "unknown verb 'Doctor'; did you mean 'doctor'? "),
        (("xyz",), "unknown verb 'xyz'; ./reproduce.sh --help lists all"),
        (("plan", "tabel3"), "unknown experiment 'tabel3'; did you mean 'table3'? "),
        (("report", "table1", "fig33"), "unknown experiment 'fig33'; did you mean "),
        (("quick", "--tier", "smok"), "unknown tier 'smok'; did you mean 'smoke'? "),
        (("verify", "--tier", "huge"), "unknown tier 'huge'; known: paper, local, "),
        (("data", "fetch", "cifar"), "unknown data set 'cifar'; did you mean 'cifar"),
        (("data", "stauts"), "unknown action 'stauts'; did you mean 'status'? "),
        (("cache", "clean"), "unknown action 'clean'; did you mean 'clear'? "),
        (("list", "--names", "metric"), "unknown kind 'metric'; did you mean 'metric"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(arguments, text, capsys):
    assert answer(capsys, *arguments).startswith(text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "the following arguments are required: VERB; ./reproduce.sh --help "),
        (("pretrain",), "the following arguments are required: EXPERIMENT; "),
        (("quick", "--wrong"), "unrecognized arguments: --wrong; ./reproduce.sh"),
        (
            ("quick", "--results", "a", "--commit-results"),
            "argument --commit-results: not allowed with argument --results; "
            "./reproduce.sh quick --help shows how",
        ),
        (("doctor", "--results", "a"), "unrecognized arguments: --results a; "),
    ],
)
def test_a_wrong_command_says_where_help_is(arguments, text, capsys):
    assert answer(capsys, *arguments).startswith(text)


@pytest.mark.parametrize("option", ["--workers", "--replicates"])
@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", ""])
def test_numbers_are_whole_and_at_least_one(option, value, capsys):
    assert answer(capsys, "quick", f"{option}={value}") == (
        f"{option} must be a whole number of at least 1, got {value!r}"
    )


def test_a_known_name_is_returned_and_the_message_lists_the_others():
    assert check_name("tier", "local", TIERS) == "local"
    with pytest.raises(UsageError, match="unknown tier 'x'; known: paper, local, smok"):
        check_name("tier", "x", TIERS)


def test_every_verb_has_a_line_of_help(capsys):
    _, verbs = make_parser()
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    shown = {line.split()[0] for line in lines if line.startswith("    ") if line[4:5]}
    assert set(verbs) <= shown
    assert {"quick", "all", "report", "verify", "plan", "data", "cache"} <= set(verbs)


def test_an_interrupt_says_that_nothing_is_lost(monkeypatch, capsys):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.cli.verbs.listing.run", interrupted)
    assert main(["list"]) == 130
    assert "finished runs are kept" in capsys.readouterr().err


def test_an_unexpected_error_is_not_hidden(monkeypatch):
    def broken(options):
        raise FileNotFoundError("a defect")

    monkeypatch.setattr("benchmarks.cli.verbs.listing.run", broken)
    with pytest.raises(FileNotFoundError, match="a defect"):
        main(["list"])


@pytest.mark.parametrize("arguments", ["['list']", "['tabel3']", "['--help']"])
def test_help_and_lists_import_nothing_heavy(arguments):
    """Torch alone takes seconds, and `list` is to answer within one."""
    code = f"""
import sys
from benchmarks.__main__ import main
try:
    main({arguments})
except SystemExit:
    pass
heavy = ("torch", "pandas", "scipy", "numpy", "matplotlib", "metricopt")
print(sorted(set(heavy) & set(sys.modules)), file=sys.stderr)
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1] == "[]", ended.stderr

"""The verb `doctor`: one screen."""

import re

import pytest

from benchmarks.__main__ import main
from benchmarks.cli.verbs import doctor


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    for name in ("data", "cache", "store"):
        monkeypatch.setenv(f"METRICOPT_{name.upper()}", str(tmp_path / name))


def test_doctor_says_on_one_screen_what_is_there(tmp_path, capsys):
    code = main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert code == (0 if lines[-1] == "ready" else 1)
    assert len(lines) <= 40
    # A long temporary folder widens its table, the heading too.
    wide = (str(tmp_path), "free GB")
    texts = [line for line in lines if not any(part in line for part in wide)]
    assert max(map(len, texts)) <= 100
    page = "\n".join(lines)
    for name in ("python", "cores", "GPU", "torch", "gpytorch", "git+https://"):
        assert name in page
    words = [line.split() for line in lines]
    assert re.search(r"^digits +full embedded\b", page, re.MULTILINE)
    assert re.search(r"^a9a +full missing\b", page, re.MULTILINE)
    assert re.search(r"\bsop +full missing$", page, re.MULTILINE)
    (store,) = [line for line in words if line[:2] == ["runs", f"{tmp_path / 'store'}"]]
    assert store[3] == "0"


def test_what_is_missing_is_a_problem(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "needed", lambda: ["torch", "no-such", "nor-such"])
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "problem: no-such, nor-such missing; delete .venv and run ./reproduce.sh again",
        "not ready: 1 problems",
    ]


def test_full_disks_are_problems(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "free_gigabytes", lambda folder: 0.5)
    assert main(["doctor"]) == 1
    *_, first, second, third, end = capsys.readouterr().out.splitlines()
    for line in (first, second, third):
        assert line.startswith("problem: the disk of ")
        assert line.endswith(" has 0.5 GB free, less than 1 GB")
    assert end == "not ready: 3 problems"


def test_the_needed_packages_are_those_of_the_project():
    names = doctor.needed()
    assert {"torch", "scikit-learn", "pandas", "pytest"} <= set(names)
    assert all(name.replace("-", "").replace("_", "").isalnum() for name in names)

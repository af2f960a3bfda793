"""Units of an installed package: in the list, in tables, in worker processes."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.cli import catalogue
from benchmarks.cli.verbs import listing
from benchmarks.runs.environment import environment
from benchmarks.runs.paths import ROOT
from metricopt.errors import ConfigError
from metricopt.registry import Registry, find

SOURCE = Path(__file__).parent / "installed"
NAME = "their_rivals"
RUNS = """
import json, sys
from pathlib import Path

from benchmarks.execution.runner import run_all
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from metricopt import METRICS

specs = find_experiment("table3").specs("smoke", 2, True)
rival = [spec for spec in specs if spec.row == "half-way"]
at = ("balanced", "digit-8/f1")
first = [spec for spec in rival if (spec.block, spec.column) == at]
store = RunStore(Path(sys.argv[1]))
run_all(first, store, workers=2)
found = [store.get(spec) for spec in first]
print(json.dumps({
    "columns": len({spec.column for spec in rival}),
    "replicates": [spec.replicate for spec in first],
    "records": [[r.status, r.queries, r.environment["their-rivals"]] for r in found],
    "metric": METRICS.get("specificity").name,
}))
"""


def called(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(site)))}
    paths["METRICOPT_CACHE"] = str(site.parent / "cache")
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(
        command, env=os.environ | paths, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The package, installed into a folder of its own with nothing from an index."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(SOURCE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-index", "--no-build-isolation", "--target", folder / "site"]
    subprocess.run([*command, folder / "source"], check=True, capture_output=True)
    return folder / "site"


TUNE = """
import torch

import metricopt

generator = torch.Generator().manual_seed(0)
outputs = torch.randn(200, 3, generator=generator)
labels = (outputs + torch.randn(200, 3, generator=generator)).argmax(1)
for _ in range(2):
    tuned = metricopt.tune(outputs, labels, "f1_macro", queries=5)
print(tuned.spent.queries <= 5)
"""


def test_units_are_listed(site):
    found = called(site, "-m", "benchmarks", "list", "rivals")
    assert "half-way" in found.stdout.split()
    assert "Points on the way down the loss gradient." in found.stdout
    assert found.stderr == ""
    assert "half-way" not in called(SOURCE, "-m", "benchmarks", "list", "rivals").stdout


def test_units_are_rows_of_tables_and_run_in_worker_processes(site, tmp_path):
    found = called(site, "-c", RUNS, str(tmp_path / "runs"))
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout)
    assert said["columns"] == 2
    assert said["replicates"] == [0, 1]
    assert said["records"] == [["done", 60, "1.2"]] * 2
    assert said["metric"] == "specificity"


def broken(site: Path, folder: Path, text: str) -> Path:
    """Return a copy of the installed package whose modules have another text."""
    copied = Path(shutil.copytree(site, folder / "site"))
    for name in ("half_way.py", "specificity.py"):
        (copied / NAME / name).write_text(text)
    return copied


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(2)\n", "SystemExit: 2"),
        ("def half(\n", "SyntaxError: '(' was never closed"),
    ],
)
def test_a_broken_package_is_named_to_those_who_ask(
    site, tmp_path, monkeypatch, text, reason
):
    monkeypatch.syspath_prepend(broken(site, tmp_path, text))
    named = (
        "the package their-rivals 1.2 adds 'half-way' to baselines.phi_methods, but "
        f"its module their_rivals.half_way cannot be imported ({reason}"
    )
    try:
        rivals = Registry("rival", "baselines.phi_methods")
        rivals.register("mine")(1)
        with pytest.warns(UserWarning, match=re.escape(f"left out: {named}")):
            assert list(rivals) == ["mine"]
        assert rivals.get("mine") == 1  # no second warning, which would be an error
        with pytest.raises(ConfigError) as caught:
            rivals.get("half-way")
        assert str(caught.value).startswith(named)
        with pytest.raises(ConfigError) as caught:
            find("halfway", Registry("method"), rivals, also=["auto"])
    finally:
        sys.modules.pop(NAME, None)
    unknown = "unknown method 'halfway'; known: mine, auto; "
    assert str(caught.value).startswith(unknown + named)
    assert environment()["their-rivals"] == "1.2"


def test_a_broken_package_stops_nobody_else(site, tmp_path):
    away = broken(site, tmp_path, "import no_such_module\n")
    found = called(away, "-c", TUNE)
    assert found.stdout == "True\n", found.stderr
    (warning,) = [line for line in found.stderr.splitlines() if "left out:" in line]
    assert "the package their-rivals 1.2 adds 'specificity'" in warning


def test_list_names_a_broken_package(site, tmp_path, monkeypatch, capsys):
    text = 'def half(\n@RIVALS.register("half-way")\n'
    monkeypatch.syspath_prepend(broken(site, tmp_path, text))
    # Asked anew here, and after it.
    monkeypatch.setattr(catalogue, "broken", cache(catalogue.broken.__wrapped__))
    monkeypatch.setattr(listing, "ROOT", tmp_path)  # no records, which cost seconds
    try:
        assert main(["list"]) == 0
        lines = capsys.readouterr().out.splitlines()
        out = [line for line in lines if line.startswith("left out: the package their")]
        assert ["'specificity'" in line for line in out] == [True, False]
        assert all("half-way" not in line for line in lines if line not in out)
        for of in ("rivals", "methods"):
            assert main(["list", of]) == 0
            assert capsys.readouterr().out.splitlines()[-1] == out[1]
        assert main(["list", "--names", "rivals"]) == 0
        names = capsys.readouterr()
    finally:
        sys.modules.pop(NAME, None)
    assert "half-way" not in names.out
    assert names.err.splitlines() == out[1:]


def test_only_packages_with_units_are_in_records():
    assert set(environment()) - {"torch", "gpytorch", "scikit-learn", "numpy"} == {
        "cma",
        "python",
        "commit",
    }

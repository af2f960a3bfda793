"""Units of an installed package: in the list, in tables, in worker processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.runs.environment import environment
from benchmarks.runs.paths import ROOT
from metricopt.errors import ConfigError
from metricopt.registry import Registry

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


def test_units_are_listed_without_an_import(site):
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_broken_package_is_named(site, tmp_path, monkeypatch, text, reason):
    broken = shutil.copytree(site, tmp_path / "site")
    (broken / NAME / "__init__.py").write_text("")
    (broken / NAME / "half_way.py").write_text(text)
    monkeypatch.syspath_prepend(broken)
    try:
        registry = Registry("rival", "baselines.phi_methods")
        with pytest.raises(ConfigError) as caught:
            registry.get("half-way")
    finally:
        sys.modules.pop(NAME, None)
    assert str(caught.value).startswith(
        "the package their-rivals 1.2 adds 'half-way' to baselines.phi_methods, but "
        f"its module their_rivals.half_way cannot be imported ({reason}"
    )
    assert environment()["their-rivals"] == "1.2"


def test_only_packages_with_units_are_in_records():
    assert set(environment()) - {"torch", "gpytorch", "scikit-learn", "numpy"} == {
        "cma",
        "python",
        "commit",
    }

"""The source distribution and the wheel: what is in them, and that they work."""

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from types import SimpleNamespace

import pytest
import yaml

import metricopt
from tests.source_tree import ROOT, modules, repository_files

BUILD = "import sys; from setuptools import build_meta as b; b.build_{}(sys.argv[1])"
HEAVY = ("results", "benchmarks", "baselines")
"""Folders of which no distribution holds anything, and that need not be copied."""


def built(kind, source, folder):
    """Build a distribution of a folder, without an index or a tool of its own."""
    command = [sys.executable, "-c", BUILD.format(kind), str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Both distributions; the wheel is built from the unpacked source distribution."""
    folder = tmp_path_factory.mktemp("distributions")
    for path in repository_files():
        place = path.relative_to(ROOT)
        if place.parts[0] not in HEAVY:
            (folder / "checkout" / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / "checkout" / place)
    built("sdist", folder / "checkout", folder)
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        names = archive.getnames()
        archive.extractall(folder, filter="data")
    source = folder / packed.name.removesuffix(".tar.gz")
    built("wheel", source, folder)
    (wheel,) = folder.glob("*.whl")
    return SimpleNamespace(sdist=packed, names=names, source=source, wheel=wheel)


def test_the_source_distribution_holds_the_library_and_its_papers(made):
    assert made.sdist.name == f"metricopt-{metricopt.__version__}.tar.gz"
    held = {name.split("/")[1] for name in made.names if "/" in name}
    assert held == {
        *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "PKG-INFO"),
        *("README.md", "SECURITY.md", "metricopt", "metricopt.egg-info"),
        *("pyproject.toml", "setup.cfg"),
    }


def test_the_wheel_holds_every_module_of_the_library_and_no_other(made):
    with zipfile.ZipFile(made.wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        (name,) = [n for n in archive.namelist() if n.endswith("dist-info/METADATA")]
        facts = email.message_from_bytes(archive.read(name))
    own = {n: path for n, path in modules().items() if n.split(".")[0] == "metricopt"}
    expected = {path.relative_to(ROOT).as_posix() for path in own.values()}
    assert held == expected | {"metricopt/py.typed"}
    assert facts["Version"] == metricopt.__version__
    needed = [line for line in facts.get_all("Requires-Dist") if "extra ==" not in line]
    names = {re.split(r"[^\w-]", line)[0] for line in needed}
    assert names == {
        *("cma", "filelock", "numpy", "safetensors", "scikit-learn", "scipy"),
        *("torch", "tqdm"),
    }
    assert 'gpytorch>=1.15; extra == "paper"' in facts.get_all("Requires-Dist")


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_both_can_be_installed_and_run_the_example_of_the_readme(made, kind, tmp_path):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0]
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False, symlinks=True)
    python = fresh / "bin" / "python"
    paths = {"base": str(fresh), "platbase": str(fresh)}
    site = sysconfig.get_path("purelib", "venv", vars=paths)
    # Packages of this environment, so that nothing heavy is installed again.
    (fresh / "known.pth").write_text(sysconfig.get_path("purelib"))
    shutil.copy(fresh / "known.pth", site)
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    # A source distribution is built with the setuptools of this environment.
    command += ["--no-deps", "--no-index", "--no-build-isolation", vars(made)[kind]]
    subprocess.run(command, check=True, capture_output=True)
    # The wheel is built from the source distribution: the example runs once.
    code = code if kind == "wheel" else "import metricopt"
    program = f"{code}\nprint(metricopt.__file__, metricopt.__version__)"
    # With -I it does not read this variable, and would compile all of torch.
    prefix = os.environ.get("PYTHONPYCACHEPREFIX")
    compiled = ["-X", f"pycache_prefix={prefix}"] if prefix else []
    found = subprocess.run(
        [python, *compiled, "-I", "-c", program],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    *lines, last = found.stdout.splitlines()
    assert kind == "sdist" or lines[0].startswith("f1_score on the observe split: 0.8")
    assert last == f"{site}/metricopt/__init__.py {metricopt.__version__}"


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    attribute = project["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    assert attribute == "metricopt.__version__"
    assert "version" not in project["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(cited["version"]) == metricopt.__version__
    assert f"\n## {metricopt.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_workflow_and_hooks_make_the_checks_of_ci():
    checks = (ROOT / ".ci" / "run").read_text()
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (local,) = hooks["repos"]
    steps = re.findall(r'^step "(\w+)" (\.venv/bin/.+)$', checks, re.MULTILINE)
    assert [(hook["id"], hook["entry"]) for hook in local["hooks"]] == steps
    assert len(steps) == 3
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = {
        step["run"] for job in jobs.values() for step in job["steps"] if "run" in step
    }
    assert commands == {".ci/run", ".ci/lowest"}
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)

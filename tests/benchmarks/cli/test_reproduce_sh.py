"""The entry point works from any folder, and no folder there can mislead it."""

import os
import shutil
import subprocess
import sys

import pytest

from benchmarks.runs.paths import ROOT, VARIABLES

PACKAGES = ("metricopt", "baselines", "benchmarks")


@pytest.fixture
def checkout(tmp_path):
    """A checkout that has this interpreter for its environment, so none is made."""
    folder = tmp_path / "the checkout"
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("reproduce.sh", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    shutil.copy(ROOT / "requirements.lock", folder / ".venv" / "locked")
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for name in PACKAGES:
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def elsewhere(tmp_path):
    """Where the user stands: folders there have the names of our packages."""
    folder = tmp_path / "else where"
    for name in (*PACKAGES, "tests"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit('shadowed')\n")
    return folder


def environment(**more):
    """The environment without folders of its own."""
    inherited = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    return inherited | more


def call(script, *arguments, cwd, **more):
    return subprocess.run(
        [str(script), *arguments],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
    )


def test_it_works_through_a_link_and_from_any_folder(checkout, elsewhere):
    link = elsewhere / "reproduce"
    link.symlink_to(checkout / "reproduce.sh")
    ended = call("./reproduce", "list", "--names", "losses", cwd=elsewhere)
    assert ended.returncode == 0, ended.stderr
    assert "cross-entropy" in ended.stdout.splitlines()
    direct = call(checkout / "reproduce.sh", "tabel3", cwd=elsewhere)
    assert direct.returncode == 2
    assert "did you mean 'table3'?" in direct.stderr


def test_relative_folders_are_read_where_the_user_stands(checkout, elsewhere):
    script = checkout / "reproduce.sh"
    ended = call(script, "data", "status", "a9a", "--data", "my data", cwd=elsewhere)
    assert ended.returncode == 0, ended.stderr
    assert str(elsewhere / "my data" / "a9a") in ended.stdout
    chosen = {"METRICOPT_CACHE": "my cache", "METRICOPT_STORE": "../runs"}
    ended = call(script, "cache", cwd=elsewhere, **chosen)
    assert f"cache  {elsewhere / 'my cache'}\n" in ended.stdout, ended.stderr
    assert f"runs   {elsewhere / '../runs'}\n" in ended.stdout


def test_worker_processes_are_not_misled(elsewhere):
    """What the runner does: a spawned process, started by `python -P -m`."""
    code = (
        "import multiprocessing, benchmarks.runs.paths as paths\n"
        "def where(queue):\n"
        "    import metricopt.errors as errors, os\n"
        "    queue.put((errors.__file__, os.environ['METRICOPT_STORE']))\n"
        "if __name__ == '__main__':\n"
        "    paths.make_variables_absolute()\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    queue = context.Queue()\n"
        "    worker = context.Process(target=where, args=(queue,))\n"
        "    worker.start()\n"
        "    print(*queue.get(), sep='|')\n"
        "    worker.join()\n"
    )
    (elsewhere / "started.py").write_text(code)
    ended = subprocess.run(
        [sys.executable, "-P", "started.py"],
        cwd=elsewhere,
        env=environment(PYTHONPATH=str(ROOT), METRICOPT_STORE="my runs"),
        capture_output=True,
        text=True,
    )
    errors = ROOT / "metricopt" / "errors.py"
    assert ended.stdout == f"{errors}|{elsewhere / 'my runs'}\n", ended.stderr


def test_the_tests_run_in_the_checkout(monkeypatch, tmp_path):
    from benchmarks.__main__ import main

    started = []

    def start(command, cwd):
        started.append((command, cwd, os.environ["METRICOPT_DATA"]))
        return subprocess.CompletedProcess(command, 5)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METRICOPT_DATA", "my data")
    monkeypatch.setattr(subprocess, "run", start)
    assert main(["test"]) == 5
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile"]
    command.append("--no-loadscope-reorder")
    assert started == [(command, ROOT, str(tmp_path / "my data"))]

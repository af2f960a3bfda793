"""Kill runs at random moments, go on, and compare.

`python -m tests.benchmarks.execution.kills` starts it.

A killed and resumed table must equal an undisturbed one byte for byte, with one record
per run. Kills hit the parent alone, whose workers must notice, or all its processes.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runs.record import FIELD, VOLATILE, RunRecord
from metricopt.errors import DataError, MetricOptError

VOLATILE_FILES = ("records.jsonl", "time.md", "metric_over_seconds")
"""Beginnings of the names of files of a report that hold seconds."""
LAST_LINES = 5


@dataclass(frozen=True)
class Plan:
    """What is run, and how often it is killed; the seed decides the moments.

    The command makes all runs of one experiment and its report; `--results` and
    `--store` are added to it. `compare` is `differences` if None.
    """

    command: tuple[str, ...]
    times: int = 20
    seed: int = 0
    compare: "Callable[[Sandbox, Sandbox], list[str]] | None" = None


@dataclass(frozen=True)
class Sandbox:
    """A folder with a run store, a cache, results and a log of its own."""

    folder: Path

    def start(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start the command as the leader of a process group of its own."""
        self.folder.mkdir(parents=True, exist_ok=True)
        places = ("--results", str(self.results), "--store", str(self.store))
        environment = {**os.environ, "METRICOPT_CACHE": str(self.folder / "cache")}
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*command, *places],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    def check(self, code: int) -> None:
        """Raise MetricOptError with the last lines of the log unless the code is 0."""
        if code:
            lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
            raise MetricOptError(f"a run ended with code {code}: {' / '.join(lines)}")


def finish(command: Sequence[str], site: Sandbox) -> float:
    """Run the command to its end and return the seconds it took."""
    started = time.perf_counter()
    site.check(site.start(command).wait())
    return time.perf_counter() - started


def kill_after(
    seconds: float, command: Sequence[str], site: Sandbox, *, group: bool
) -> bool:
    """Run the command, kill it after some seconds, and return whether that came to be.

    Killed are its worker processes, too, or the parent alone.
    """
    process = site.start(command)
    try:
        site.check(process.wait(timeout=seconds))
    except subprocess.TimeoutExpired:
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        return True
    return False


def run(plan: Plan, folder: Path) -> list[str]:
    """Run undisturbed, then with kills, and return every difference as a sentence.

    A table that is complete before all kills are spent is begun anew.
    """
    calm = Sandbox(folder / "undisturbed")
    seconds = finish(plan.command, calm)
    print(f"undisturbed: {seconds:.0f} s", flush=True)
    moments, problems = random.Random(plan.seed), []
    kills, rounds = 0, 0
    while kills < plan.times:
        rounds += 1
        site, begun = Sandbox(folder / f"round-{rounds}"), kills
        while kills < plan.times:
            # The draw covers the whole run, start-up and report included.
            moment, started = moments.uniform(0.05, 1.0) * seconds, time.perf_counter()
            group = moments.random() < 0.5
            if not kill_after(moment, plan.command, site, group=group):
                break
            kills += 1
            print(f"kill {kills} after {moment:.1f} s: {_whom(group)}", flush=True)
        if kills == begun:
            # The machine has become faster; else every draw might come too late.
            seconds = time.perf_counter() - started
        finish(plan.command, site)
        found = (plan.compare or differences)(calm, site)
        print(f"round {rounds}: {kills - begun} kills, {len(found)} differences")
        problems += found
    return problems


def differences(calm: Sandbox, disturbed: Sandbox) -> list[str]:
    """Return how a disturbed run's tables and records differ, empty if not at all."""
    problems = []
    expected, found = _report_files(calm.results), _report_files(disturbed.results)
    for name in sorted(expected.keys() | found.keys()):
        if name not in found or name not in expected:
            where = "disturbed" if name in expected else "undisturbed"
            problems.append(f"{name} is missing in the {where} results")
        elif expected[name] != found[name]:
            problems.append(f"{name} differs from that of the undisturbed run")
    return problems + _record_problems(calm, disturbed)


def parser(module: str) -> argparse.ArgumentParser:
    """Return a parser of the options that every kill test has."""
    found = argparse.ArgumentParser(prog=f"python -m {module}")
    found.add_argument("--times", type=int, default=20, help="kills in all")
    found.add_argument("--seed", type=int, default=0, help="decides the moments")
    return found


def judge(plan: Plan, compared: str = "") -> int:
    """Run a plan in a temporary folder, print what differs, return the exit code.

    It is 0 if nothing differs, 1 if something does, 2 if a run fails by itself.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            problems = run(plan, Path(folder))
        except MetricOptError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    for problem in problems:
        print(problem)
    print(f"{plan.times} kills: {len(problems)} differences{compared}")
    return 1 if problems else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kill test and return the exit code; see `judge`."""
    accepted = parser("tests.benchmarks.execution.kills")
    accepted.add_argument("--experiment", default="table3")
    accepted.add_argument("--tier", default="smoke")
    accepted.add_argument("--replicates", type=int, default=1)
    accepted.add_argument("--workers", type=int, default=2)
    options = accepted.parse_args(arguments)
    command = (
        *(sys.executable, "-m", "benchmarks", options.experiment),
        *("--tier", options.tier, "--replicates", str(options.replicates)),
        *("--workers", str(options.workers)),
    )
    return judge(Plan(command, options.times, options.seed), ", tables and records")


def _whom(group: bool) -> str:
    return "all its processes" if group else "the parent alone"


def _report_files(results: Path) -> dict[str, bytes]:
    """Return the content of every file of the reports that no clock may change."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in results.rglob("*")
        # A kill may leave the temporary file of an atomic write, which is hidden.
        if path.is_file()
        and not path.name.startswith(VOLATILE_FILES)
        and not path.name.startswith(".")
    }


def _record_problems(calm: Sandbox, disturbed: Sandbox) -> list[str]:
    """Compare the records of both stores, and the lines of both reports."""
    expected, found = _stored(calm), _stored(disturbed)
    problems = [f"the record {name} is lost" for name in sorted(expected - found)]
    problems += [f"the record {name} is too many" for name in sorted(found - expected)]
    for name in sorted(found):
        with suppress(FileNotFoundError):
            try:
                RunRecord.from_json((disturbed.store / name).read_text())
            except DataError as error:
                problems.append(f"the record {name} is torn: {error}")
    if _lines(calm) != _lines(disturbed):
        problems.append("records.jsonl differs in more than time and machine")
    return problems


def _stored(site: Sandbox) -> set[str]:
    paths = site.store.rglob("record.json")
    return {str(path.relative_to(site.store)) for path in paths}


def _lines(site: Sandbox) -> list[dict[str, object]]:
    """Return the records of the reports, in their order, without volatile fields."""
    return [
        json.loads(line) | dict.fromkeys([*VOLATILE, FIELD])
        for path in sorted(site.results.rglob("records.jsonl"))
        for line in path.read_text().splitlines()
    ]


if __name__ == "__main__":
    sys.exit(main())

"""Two experiments that run at once: hand-written records stand in for the suite.

The command line, the store and the folders are the real ones.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from benchmarks.__main__ import main
from benchmarks.cli.verbs import experiments, verify
from benchmarks.runs.store import RunStore, write_jsonl
from benchmarks.tables.registry import EXPERIMENTS
from tests.benchmarks.runs.record_cases import make_record, make_spec

ROWS = ("loss-only", "metricopt")


def toy_experiment(name):
    def specs(tier, replicates, offline):
        return [
            make_spec(row, number, column="toy/mcr", experiment=name, tier=tier)
            for row in ROWS
            for number in range(replicates or 2)
        ]

    return SimpleNamespace(
        name=name,
        default_tier="local",
        takes_days=False,
        layout=lambda tier: None,
        specs=specs,
    )


@dataclass
class ToySuite:
    """What was asked of the parts of the suite that are stood in for.

    Attributes:
        checkout: stands for the checkout.
        store: the run store.
        stop_after: runs after which the runner is interrupted; None for never.
        prepared, ran: specs of each call.
        workers: processes of each call.
        reports: folder and reference of each report.
    """

    checkout: Path
    store: RunStore
    stop_after: int | None = None
    prepared: list = field(default_factory=list)
    ran: list = field(default_factory=list)
    workers: list = field(default_factory=list)
    reports: list = field(default_factory=list)

    def prepare(self, specs):
        self.prepared.append(list(specs))

    def run_all(self, specs, store, *, workers, redo=()):
        missing = [s for s in specs if s.digest in redo or store.get(s) is None]
        self.workers.append(workers)
        self.ran.append([])
        for number, spec in enumerate(missing):
            if number == self.stop_after:
                raise KeyboardInterrupt
            store.put(make_record(spec, seeds={"call": len(self.ran)}))
            self.ran[-1].append(spec)
        return missing

    def write_report(self, layout, records, folder, *, reference):
        self.reports.append((Path(folder), reference))
        (Path(folder) / "table.md").write_text("# Toy\n\n| .5 |\n\n## Figures\n")
        write_jsonl(Path(folder) / "records.jsonl", records)

    def calls(self, spec):
        """The number of the call that made the record of a spec."""
        return self.store.get(spec).seeds["call"]


def install(monkeypatch, folder):
    """Put the toy suite in the place of the real one; return it."""
    checkout, store = folder / "checkout", folder / "store"
    suite = ToySuite(checkout, RunStore(store))
    units = {name: toy_experiment(name) for name in ("quick", "table3")}
    monkeypatch.setattr(EXPERIMENTS, "_units", units)
    monkeypatch.setattr(EXPERIMENTS, "_filled", True)
    report = SimpleNamespace(write_report=suite.write_report, terminal_page=str)
    for name, part in (
        ("execution.networks", SimpleNamespace(prepare=suite.prepare)),
        (
            "execution.runner",
            SimpleNamespace(run_all=suite.run_all),
        ),
        ("report.page", report),
    ):
        monkeypatch.setitem(sys.modules, f"benchmarks.{name}", part)
    monkeypatch.setattr(experiments, "COMMITTED_RESULTS", checkout / "results")
    monkeypatch.setattr(verify, "COMMITTED_RESULTS", checkout / "results")
    monkeypatch.setattr(experiments, "OWN_RESULTS", checkout / "results" / "own")
    monkeypatch.setenv("METRICOPT_STORE", str(store))
    monkeypatch.setenv("METRICOPT_CACHE", str(folder / "cache"))
    monkeypatch.setenv("METRICOPT_DATA", str(folder / "data"))
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    return suite


def run(*arguments):
    """Run a command that has to succeed."""
    assert main(arguments) == 0

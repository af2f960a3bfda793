"""The verb `bundle`: the reports of one experiment in an archive for others."""

from argparse import Namespace
from pathlib import Path

from benchmarks.cli.verbs.experiments import reference
from benchmarks.report.bundle import RECORDS, pack
from benchmarks.runs.paths import COMMITTED_RESULTS, ROOT, TIERS
from metricopt.errors import DataError
from metricopt.files import write_atomically


def run(options: Namespace) -> int:
    """Write the archive and say what checks it."""
    name = options.experiment
    root = Path(options.results or COMMITTED_RESULTS).expanduser().absolute()
    tiers = [options.tier] if options.tier else TIERS
    folders = [root / name / tier for tier in tiers]
    found = [folder for folder in folders if (folder / RECORDS).is_file()]
    if not found:
        raise DataError(f"there is no report of {name} in {root}")
    lock = (ROOT / "requirements.lock").read_bytes()
    content = pack({folder: reference(folder) for folder in found}, lock)
    # Beside the site, where git ignores what is made.
    out = Path(options.out or ROOT / "build" / f"{name}.zip").expanduser().absolute()
    write_atomically(out, content)
    print(f"{out}, {len(content) / 1e6:.1f} MB")
    print(f"./reproduce.sh verify {name} --results {out} checks it, in any checkout")
    return 0

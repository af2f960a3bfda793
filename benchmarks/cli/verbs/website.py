"""The verb `site`: static pages of all records, to look at without a network."""

from argparse import Namespace
from pathlib import Path

from benchmarks.runs.paths import COMMITTED_RESULTS, OWN_RESULTS, SITE


def run(options: Namespace) -> int:
    """Build the site and say where it is."""
    # Imported here because it takes seconds.
    from benchmarks.website.build import write_site

    out = Path(options.out or SITE).expanduser().absolute()
    own = OWN_RESULTS if options.own else None
    site = write_site(out, COMMITTED_RESULTS, own)
    runs = sum(len(report.records) + len(report.own) for report in site.reports)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{runs:,} runs in {len(site.reports)} tables, {size / 1e6:.1f} MB")
    print(f"Open {out / 'index.html'}")
    return 0

"""The verb `cache`: what the cache holds, and how to make room."""

from argparse import Namespace
from collections.abc import Sequence

from benchmarks.cli.parser import UsageError, check_name
from benchmarks.report.render import align
from benchmarks.runs.artifacts import RUNS, cache_kinds, clear, size_limit
from benchmarks.runs.paths import cache_root, store_root


def run(options: Namespace) -> int:
    """Show the cache, or remove some kinds of files from it."""
    if options.action == "clear":
        return _clear(options.kinds)
    if options.kinds:
        raise UsageError("only `cache clear` takes kinds")
    rows = [(kind, *_numbers(*found)) for kind, found in cache_kinds().items()]
    print(f"cache  {cache_root()}\nruns   {store_root()}\n")
    print(align([("kind", "files", "MB"), *rows]))
    print(
        f"\nFeatures beyond {size_limit() / 1e9:g} GB (METRICOPT_CACHE_GIGABYTES) are "
        "removed, the least recently used first."
    )
    return 0


def _clear(kinds: Sequence[str]) -> int:
    """Remove kinds, or everything that can be made again; runs must be named."""
    held = cache_kinds()
    for kind in kinds:
        check_name("kind", kind, list(held))
    for kind in kinds or [kind for kind in held if kind != RUNS]:
        clear([kind])
        files, megabytes = _numbers(*held[kind])
        print(f"removed {kind}: {files} files, {megabytes} MB")
    return 0


def _numbers(files: int, size: int) -> tuple[str, str]:
    return f"{files:,}", f"{size / 1e6:,.1f}"

"""The committed records, from schema 1 to schema 2, and the proof that no value moved.

`python -m benchmarks.runs.migrate --write` rewrites records of schema 1. Without
`--write` it compares the records with those before the migration, as git has them.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.runs.paths import ROOT
from benchmarks.runs.store import read_jsonl, write_jsonl
from benchmarks.runs.upgrade import digest_of
from metricopt.errors import DataError, MetricOptError

Content = dict[str, Any]
Cell = tuple[Any, ...]

PLACE = ("experiment", "tier", "block", "row", "column", "replicate")
SAME = (
    "status",
    "message",
    "data",
    "environment",
    "seeds",
    "queries",
    "shared_queries",
    "gradient_steps",
    "seconds",
)
"""Fields that are the same in both schemas."""
NOTES = {"jaccard-legacy": "test_legacy", "aucpr-macro-logits": "test_logits"}
"""Notes of schema 1 by the metric they became."""
KINDS = {"tabular": "dynamic-bias", "images": "film"}
"""Kinds of adapter of schema 1 by the pipeline they stood for."""


class Line(NamedTuple):
    """A record before and after: its digests, its place and what is wrong."""

    old: str
    new: str
    cell: Cell
    problems: list[str]

    @property
    def text(self) -> str:
        """The line as printed."""
        place = "/".join(str(part) for part in self.cell)
        return f"{self.old} -> {self.new} {place}: {'; '.join(self.problems) or 'same'}"


def migrate(results: Path) -> list[Path]:
    """Rewrite the records of schema 1 below a folder and return the files changed."""
    changed = []
    for path in record_files(results):
        if _is_old(path.read_text(encoding="utf-8")):
            write_jsonl(path, read_jsonl(path))
            changed.append(path)
    return changed


def record_files(results: Path) -> list[Path]:
    """Return the files of records below a folder.

    Raises:
        DataError: if there is none.
    """
    found = sorted(results.glob("*/*/records.jsonl"))
    if not found:
        raise DataError(f"there is no file of records below {results}")
    return found


def compared(path: Path, before: str) -> Iterator[Line]:
    """Compare every record of a file with the one before the migration.

    Args:
        path: records of schema 2.
        before: content of the same file in schema 1.

    Raises:
        DataError: if the file is still of schema 1.
    """
    if _is_old(path.read_text()):
        raise DataError(f"{path} is of schema 1; `--write` brings it to schema 2")
    new = {_cell(content): content for content in _contents(path.read_text())}
    old = {_cell(content): content for content in _contents(before)}
    for cell in dict.fromkeys([*old, *new]):
        if cell in old and cell in new:
            yield _line(cell, old[cell], new[cell])
        else:
            where = "new" if cell in new else "old"
            yield Line("-", "-", cell, [f"only the {where} file has it"])


def before_migration(path: Path, revision: str | None = None) -> str:
    """Return what git has of a file before its migration.

    Args:
        path: a file of records.
        revision: the commit; None for the newest with records of schema 1.

    Raises:
        DataError: if git does not have it.
    """
    folder, name = path.parent, f"./{path.name}"
    if revision is not None:
        return _git(folder, "show", f"{revision}:{name}")
    for commit in _git(folder, "log", "--format=%H", "--", name).split():
        text = _git(folder, "show", f"{commit}:{name}")
        if _is_old(text):
            return text
    raise DataError(
        f"the git history here has no records of schema 1 in {path}; in a shallow "
        "clone, `git fetch --unshallow` brings them"
    )


def _line(cell: Cell, old: Content, new: Content) -> Line:
    before = dict(old["spec"])
    stored = before.pop("digest")
    after = dict(new["spec"])
    kept = after.pop("digest")
    expected = {name: new[name] for name in SAME} | _as_schema_1(new)
    pairs = {name: (old[name], expected[name]) for name in expected} | {
        "spec": (before, _spec_as_schema_1(after)),
        "old digest": (stored, digest_of(before)),
        "new digest": (kept, digest_of(after)),
        "queried": (_evaluations(old), sum(new["queried"].values())),
    }
    problems = [
        f"{name} differs" for name, (one, other) in pairs.items() if one != other
    ]
    return Line(digest_of(before), digest_of(after), cell, problems)


def _evaluations(old: Content) -> int:
    """Return all metric evaluations of a run, however many rows share them."""
    shared, rows = old["shared_queries"], old["spec"]["settings"]["meta_tests"]
    return int(shared + rows * (old["queries"] - shared))


def _as_schema_1(new: Content) -> Content:
    """Return observe, test, trace and notes of a record as schema 1 had them.

    It checks the upgrade, so it shares no code with it.
    """
    metric = new["spec"]["metric"]["name"]
    others = {name: values for name, values in new["test"].items() if name != metric}
    return {
        "observe": new["observe"].get(metric, []),
        "test": new["test"].get(metric, []),
        "trace": [
            {
                "step": point["step"],
                "queries": point["queries"],
                "observe": point["observe"].get(metric),
                "test": point["test"][metric],
            }
            for point in new["trace"]
        ],
        "notes": new["notes"]
        | {NOTES[name]: values for name, values in others.items()},
    }


def _spec_as_schema_1(new: Content) -> Content:
    """Return a spec as schema 1 had it, without its digest."""
    pipeline = new["pipeline"]["settings"]
    adapter = pipeline["adapter"] | {"kind": KINDS[new["pipeline"]["name"]]}
    settings = pipeline | {
        "adapter": adapter,
        "metric": new["metric"]["name"],
        "arm": new["arm"],
        "budget": new["budget"],
        "meta_tests": new["meta_tests"],
        "diagnose": new["diagnose"],
    }
    return {name: new[name] for name in PLACE} | {"settings": settings}


def _contents(text: str) -> list[Content]:
    return [json.loads(line) for line in text.splitlines()]


def _cell(content: Content) -> Cell:
    return tuple(content["spec"][name] for name in PLACE)


def _is_old(text: str) -> bool:
    """Return whether a file holds records of schema 1, judged by its first line."""
    first = text.partition("\n")[0]
    return bool(first) and "schema" not in json.loads(first)


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        found = subprocess.run(command, capture_output=True, check=True)
    except OSError as error:
        raise DataError(f"git is needed to read earlier records: {error}") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip()
        raise DataError(
            f"git has no such records: {reason}; in a shallow clone, "
            "`git fetch --unshallow` brings them"
        ) from error
    return found.stdout.decode()


def main(arguments: Sequence[str] | None = None) -> int:
    """Migrate or compare the committed records and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runs.migrate", description=__doc__
    )
    parser.add_argument("--write", action="store_true", help="rewrite old records")
    parser.add_argument("--against", metavar="REV", help="commit to compare with")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args(arguments)
    try:
        if options.write:
            for path in migrate(options.results):
                print(f"wrote {path}")
            return 0
        return _print_comparison(options.results, options.against)
    except MetricOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _print_comparison(results: Path, revision: str | None) -> int:
    total = differing = 0
    for path in record_files(results):
        for line in compared(path, before_migration(path, revision)):
            print(line.text)
            total += 1
            differing += bool(line.problems)
    print(
        f"{total} records held against those of schema 1: "
        + (f"{differing} differ" if differing else "all values are the same")
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

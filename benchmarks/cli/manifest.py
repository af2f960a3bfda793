"""The list of everything in `results` by content, and of the numbers in the prose.

`results/manifest.json` names every file below `results` with its SHA-256, and the
numbers that README.md and the pages of `docs` hold outside of their tables, with the
marks of those that are read from records. A report that was altered together with all
that is computed from it still differs from the list. The list lies in git, which alone
shows that it was rewritten, too.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.runs.paths import OWN_RESULTS
from metricopt.errors import DataError
from metricopt.files import read_text, write_atomically

NAME = "manifest.json"
COMMAND = "`python -m benchmarks.cli.pages`"
NUMBER = re.compile(r"<\S+>|[-+±\N{MINUS SIGN}]?(?:\d|[.,:](?=\d))+")
"""A number, or what stands for one of a record."""


def write_manifest(results: Path, prose: Mapping[str, str]) -> None:
    """List what lies in the folder of the committed reports.

    Args:
        results: the folder.
        prose: text of every page by its name, see `pages.prose`.
    """
    write_atomically(results / NAME, _text(_manifest(results, prose)).encode())


def manifest_problems(
    results: Path, prose: Mapping[str, str], experiments: Sequence[str] = ()
) -> list[str]:
    """Return what differs from the list, one sentence each.

    Args:
        results: folder of the committed reports.
        prose: text of every page by its name, see `pages.prose`.
        experiments: whose files are compared, and nothing else; all if there are none.
    """
    path = results / NAME
    try:
        text = read_text(path)
        listed = json.loads(text)
        files, numbers = _texts(listed["files"]), _texts(listed["numbers"])
    except (OSError, DataError, ValueError, KeyError, TypeError, RecursionError):
        return [f"{path} is missing or damaged; restore it with git, or run {COMMAND}"]
    found = _manifest(results, prose)
    if experiments:
        both = [
            {name: every[name] for name in every if name.split("/")[0] in experiments}
            for every in (files, found["files"])
        ]
        return [*_file_problems(results, *both)]
    problems = [
        *_file_problems(results, files, found["files"]),
        *_number_problems(numbers, found["numbers"]),
    ]
    if text != _text(found) and not problems:
        problems = [f"{path} is not as it is written; run {COMMAND}"]
    return problems


def _texts(listed: Mapping[str, Any]) -> dict[str, str]:
    """Return texts by name.

    Raises:
        TypeError: if they are none.
    """
    texts = dict(listed)
    if not all(isinstance(text, str) for pair in texts.items() for text in pair):
        raise TypeError("expected texts")
    return texts


def _text(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"


def _manifest(results: Path, prose: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {
        "files": {
            path.relative_to(results).as_posix(): _sha256(path)
            for path in _listed(results)
        },
        "numbers": {page: " ".join(NUMBER.findall(prose[page])) for page in prose},
    }


def _listed(results: Path) -> Iterator[Path]:
    """Yield every file that git keeps below a folder of reports, but the list."""
    for path in sorted(results.rglob("*")):
        parts = path.relative_to(results).parts
        hidden = any(part.startswith(".") for part in parts)
        if hidden or parts[0] in (NAME, OWN_RESULTS.name):
            continue
        if path.is_symlink() or path.is_file():
            yield path


def _sha256(path: Path) -> str:
    if path.is_symlink():
        return f"a link to {path.readlink()}"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file_problems(
    results: Path, listed: Mapping[str, str], present: Mapping[str, str]
) -> Iterator[str]:
    for name in sorted({*listed, *present}):
        if name not in present:
            yield f"{results / name} is missing, but listed in {NAME}"
        elif name not in listed:
            yield f"{results / name} is not listed in {NAME}; run {COMMAND}"
        elif listed[name] != present[name]:
            yield (
                f"{results / name} is not the file that {NAME} lists; restore it with "
                f"git, or run {COMMAND} if the change is meant"
            )


def _number_problems(
    listed: Mapping[str, str], present: Mapping[str, str]
) -> Iterator[str]:
    for page in sorted({*listed, *present}):
        wanted, found = (str(numbers.get(page, "")) for numbers in (listed, present))
        pairs = zip_longest(wanted.split(), found.split(), fillvalue="none")
        apart = [(want, have) for want, have in pairs if want != have]
        if apart:
            want, have = apart[0]
            yield (
                f"{page} has the number {have} in its prose where {NAME} lists {want}; "
                f"mend it, or run {COMMAND} if the change is meant"
            )

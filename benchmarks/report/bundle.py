"""A report in one archive: its files, where its runs were made, and on which data.

The archive holds `results/<experiment>/<tier>/...` as a folder of reports does,
`reference/...` with the committed records that a report of a user was written beside,
the lock of the packages, and `bundle.json` with the rest.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.runs.codec import canonical
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import jsonl, read_jsonl
from metricopt.errors import DataError, MetricOptError

MANIFEST, LOCK, RECORDS = "bundle.json", "requirements.lock", "records.jsonl"
RESULTS, REFERENCE = "results", "reference"
"""Folders in an archive: of the reports, and of what they were written beside."""
LARGEST = 1 << 30
"""Bytes of all files of an archive; one with more is none of ours."""
NO_TIME = (1980, 1, 1, 0, 0, 0)
"""Date of every file, so that the same report gives the same archive."""
References = Mapping[Path, Sequence[RunRecord] | None]
"""Committed records by the folder of a report; None for a committed report itself."""


def pack(references: References, lock: bytes) -> bytes:
    """Return an archive of some reports of one experiment.

    Args:
        references: the folders of the reports, `.../<experiment>/<tier>`, with what
            each was written beside.
        lock: the lock of the packages.

    Raises:
        DataError: if the records of a report are missing or damaged.
    """
    files = {LOCK: lock}
    for folder, beside in references.items():
        place = f"{folder.parent.name}/{folder.name}"
        for path in sorted(folder.iterdir()):
            if not path.name.startswith("."):
                files[f"{RESULTS}/{place}/{path.name}"] = path.read_bytes()
        if beside is not None:
            files[f"{REFERENCE}/{place}/{RECORDS}"] = jsonl(beside).encode()
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in files}
    manifest = {**_facts(list(references)), "files": digests}
    text = json.dumps(manifest, indent=1, ensure_ascii=False, sort_keys=True)
    return _zipped({MANIFEST: f"{text}\n".encode(), **files})


@dataclass(frozen=True)
class Unpacked:
    """What came out of an archive.

    Attributes:
        folder: where it was unpacked.
        problems: what is wrong with it, one sentence each.
        lock: the lock of the packages that its runs were made with.
    """

    folder: Path
    problems: tuple[str, ...]
    lock: bytes

    @property
    def results(self) -> Path:
        """The folder of the reports."""
        return self.folder / RESULTS

    def reference(self, folder: Path) -> list[RunRecord] | None:
        """Return the records that a report was written beside, None without any."""
        place = Path(REFERENCE, folder.parent.name, folder.name, RECORDS)
        path = self.folder / place
        return read_jsonl(path) if path.is_file() else None


def unpack(path: Path, folder: Path) -> Unpacked:
    """Unpack an archive into a folder and compare it with what it says of itself.

    Raises:
        DataError: if it is no such archive, or a record in it is damaged.
    """
    try:
        files = _unzipped(path)
        manifest = json.loads(files.pop(MANIFEST))
        listed, lock = dict(manifest["files"]), files[LOCK]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is no bundle of a report: {error!r}") from error
    for name, content in files.items():
        target = folder / name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise DataError(f"{path} holds a file outside of its folder: {name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    problems = [
        f"{name} is not the file that {MANIFEST} lists"
        for name in sorted({*files, *listed})
        if name not in files
        or hashlib.sha256(files[name]).hexdigest() != listed.get(name)
    ]
    try:
        facts = _facts(sorted((folder / RESULTS).glob("*/*")))
    except MetricOptError as error:
        return Unpacked(folder, (*problems, str(error)), lock)
    problems += [
        f"{MANIFEST} tells other {name} than the records do"
        for name in facts
        if manifest.get(name) != facts[name]
    ]
    return Unpacked(folder, tuple(problems), lock)


def _facts(folders: Sequence[Path]) -> dict[str, Any]:
    """Return what the records of some reports tell: commands, data, environments."""
    records = [r for folder in folders for r in read_jsonl(folder / RECORDS)]
    names = {record.spec.experiment for record in records}
    data: dict[str, set[str]] = {}
    for record in records:
        digests = data.setdefault(record.data.get("variant", ""), set())
        digests.add(record.data.get("digest", ""))
    places = sorted({(r.spec.experiment, r.spec.tier) for r in records})
    environments = {canonical(record.environment) for record in records}
    return {
        "commands": [f"./reproduce.sh {name} --tier {tier}" for name, tier in places],
        "check": f"./reproduce.sh verify {' '.join(sorted(names))} --results THIS_FILE",
        "data": {variant: sorted(data[variant]) for variant in sorted(data)},
        "environments": [json.loads(text) for text in sorted(environments)],
    }


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()


def _unzipped(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST:
            raise ValueError(f"{size:,} bytes, and at most {LARGEST:,} are read")
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        return {entry.filename: archive.read(entry) for entry in entries}

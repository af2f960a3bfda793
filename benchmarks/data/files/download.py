"""Download files with resume and checks, and read compressed files safely."""

import bz2
import gzip
import hashlib
import lzma
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from filelock import FileLock
from tqdm import tqdm

from benchmarks.runs.paths import FULL_DISK, free_gigabytes
from metricopt.errors import ConfigError, DataError

_SCHEMES = ("http", "https", "file")
_CHUNK_BYTES = 1 << 16
_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
}
COMPRESSIONS = ("", *_OPENERS)
"""Suffixes that `read_archive` can read. The empty one means not compressed."""


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a download is.

    Attributes:
        attempts: number of tries per mirror. Each one resumes the one before.
        timeout_seconds: a connection that is silent for so long is broken.
        pause_seconds: pause before the second try. It doubles with each further try.
    """

    attempts: int = 4
    timeout_seconds: float = 30.0
    pause_seconds: float = 1.0


def download(
    urls: Sequence[str],
    target: Path,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    progress: bool = True,
    policy: RetryPolicy | None = None,
) -> Path:
    """Download a file from the first mirror that delivers it, and return its path.

    A broken transfer leaves a `.part` file, and the next try or call continues it. The
    target appears only when it is complete and checked. An existing target is checked
    and not changed. Several processes may download the same target.

    Args:
        urls: http, https or file addresses of the same content, the best one first.
        target: the file to write. Its folder is made if it is missing.
        sha256: expected checksum in hexadecimal, or its first digits; None for no
            check.
        md5: expected checksum if the publisher gives no other; None for no check.
        progress: whether to show a progress bar (on a terminal only).
        policy: tries and timeouts.

    Raises:
        ConfigError: if there is no address or one has another scheme.
        DataError: if no mirror delivers the file; the message gives the reasons.
    """
    _require_schemes(urls)
    checksums = {"sha256": sha256, "md5": md5}
    job = _Job(target, checksums, progress, policy or RetryPolicy())
    if job.is_done():
        return target
    _make_folder(target.parent)
    with FileLock(target.with_name(f".{target.name}.lock")):
        if job.is_done():
            return target
        failures = []
        for url in urls:
            try:
                return job.fetch(url)
            except DataError as error:
                failures.append(f"{url}: {error}")
    raise DataError(f"cannot download {target.name}; " + "; ".join(failures))


def read_archive(
    path: Path, *, name: str, md5: str | None = None, max_bytes: int = 1 << 28
) -> bytes:
    """Return the content of a plain, gzip, xz or bzip2 file.

    The suffix of the file tells its compression.

    Args:
        path: the file.
        name: data set of the file, for the repair command in the message.
        md5: expected checksum of the packed file; None for no check.
        max_bytes: largest unpacked size that is accepted.

    Raises:
        DataError: if the file is missing, incomplete, damaged, too large, a web page,
            or has another checksum.
    """
    fetch = f"run `./reproduce.sh data fetch {name}`"
    repair = f"delete it and {fetch}"
    opener = _OPENERS.get(path.suffix, open)
    try:
        if md5 and (wrong := wrong_checksum(path, "md5", md5)):
            raise DataError(f"{path} is not the expected file: {wrong}; {repair}")
        with opener(path, "rb") as file:
            content: bytes = file.read(max_bytes + 1)
    except EOFError:
        raise DataError(f"{path} is incomplete; {repair}") from None
    except FileNotFoundError:
        raise DataError(f"{path} is missing; {fetch}") from None
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path} cannot be read ({error}); {repair}") from None
    if _is_web_page(content):
        raise DataError(f"{path} is a web page, not data; {repair}")
    if len(content) > max_bytes:
        raise DataError(f"{path} unpacks to more than {max_bytes} bytes; {repair}")
    return content


@dataclass(frozen=True)
class _Job:
    """One file to download, with its checks and its patience."""

    target: Path
    checksums: Mapping[str, str | None]
    progress: bool
    policy: RetryPolicy

    def is_done(self) -> bool:
        """Return whether the target is there; raise DataError if it is another file."""
        if not self.target.exists():
            return False
        if not self.target.is_file():
            raise DataError(f"{self.target} must be a file, got a folder or a device")
        try:
            self.check(self.target)
        except OSError as error:
            raise DataError(f"{self.target} cannot be read ({error})") from error
        except DataError as error:
            raise DataError(f"{error}; delete it and run this again") from error
        return True

    def fetch(self, url: str) -> Path:
        """Download from one mirror, check the file and move it to the target."""
        part = self._part(url)
        self._transfer_patiently(url, part)
        try:
            self.check(part)
        except DataError:
            # A damaged part must not be resumed.
            part.unlink()
            raise
        os.replace(part, self.target)
        return self.target

    def check(self, path: Path) -> None:
        """Compare the file with the expected checksums."""
        for kind, expected in self.checksums.items():
            if expected and (wrong := wrong_checksum(path, kind, expected)):
                raise DataError(f"{self.target} is not the expected file: {wrong}")

    def _part(self, url: str) -> Path:
        # One part per mirror, so that bytes of two mirrors are never mixed.
        mark = hashlib.sha256(url.encode()).hexdigest()[:8]
        return self.target.with_name(f"{self.target.name}.{mark}.part")

    def _transfer_patiently(self, url: str, part: Path) -> None:
        for attempt in range(self.policy.attempts):
            if attempt:
                time.sleep(self.policy.pause_seconds * 2 ** (attempt - 1))
            try:
                return self._transfer(url, part)
            except HTTPError as error:
                error.close()
                reason = f"the server answered {error.code} {error.reason}"
                if error.code == 416:
                    part.unlink(missing_ok=True)
                elif error.code < 500 and error.code not in (408, 429):
                    break
            except (OSError, HTTPException) as error:
                reason = str(error) or type(error).__name__
                if getattr(error, "errno", None) in FULL_DISK:
                    break
        raise DataError(reason)

    def _transfer(self, url: str, part: Path) -> None:
        offset = part.stat().st_size if part.exists() else 0
        headers = {"User-Agent": "metricopt"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        request = Request(url, headers=headers)
        with urlopen(request, timeout=self.policy.timeout_seconds) as answer:
            offset = _resumed_at(answer.headers, offset)
            length = answer.headers.get("Content-Length", "")
            known = length.isdecimal() and len(length) < 16  # below a petabyte
            size = offset + int(length) if known else None
            _check_room(part.parent, 0 if size is None else size - offset)
            self._copy(answer, part, offset, size)
        got = part.stat().st_size
        if size is not None and got != size:
            raise ConnectionError(f"the connection broke after {got} of {size} bytes")

    def _copy(
        self, answer: IO[bytes], part: Path, offset: int, size: int | None
    ) -> None:
        chunk = answer.read(_CHUNK_BYTES)
        if offset == 0 and _is_web_page(chunk):
            start = chunk[:60].decode(errors="replace").split("\n")[0]
            raise DataError(f"got a web page instead of the file ({start!r})")
        bar = tqdm(
            desc=self.target.name,
            total=size,
            initial=offset,
            unit="B",
            unit_scale=True,
            disable=None if self.progress else True,
        )
        with bar, part.open("ab" if offset else "wb") as file:
            while chunk:
                file.write(chunk)
                bar.update(len(chunk))
                chunk = answer.read(_CHUNK_BYTES)


def _resumed_at(headers: HTTPMessage, offset: int) -> int:
    """Return where the answer starts: at the requested position, or at 0."""
    answered = headers.get("Content-Range")
    if answered is None:
        # A server without range requests sends the whole file.
        return 0
    if not answered.startswith(f"bytes {offset}-"):
        raise ConnectionError(f"asked for byte {offset} on, got {answered!r}")
    return offset


def _is_web_page(content: bytes) -> bool:
    return content[:512].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _require_schemes(urls: Sequence[str]) -> None:
    if not urls:
        raise ConfigError("expected at least one address to download from, got none")
    for url in urls:
        if urlsplit(url).scheme not in _SCHEMES:
            raise ConfigError(f"expected an http, https or file address, got {url!r}")


def _check_room(folder: Path, size: int) -> None:
    free, needed = free_gigabytes(folder), size / 1e9
    if needed > free:
        has = f"the disk of {folder} has {free:.1f} GB free"
        raise DataError(f"{has}, the file needs {needed:.1f} GB")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        hint = "choose another data root with METRICOPT_DATA"
        raise DataError(f"cannot write to the folder {folder}; {hint}")


def wrong_checksum(path: Path, kind: str, expected: str) -> str | None:
    """Say how the checksum of a file differs from the expected one, or return None.

    Args:
        path: path of the file.
        kind: such as `sha256`.
        expected: in hexadecimal, or its first digits.
    """
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, kind).hexdigest()
    same = actual.startswith(expected.lower())
    return None if same else f"expected {kind} {expected}, got {actual}"


def require_md5(path: Path, expected: str, remedy: str) -> None:
    """Check a file.

    Args:
        path: path of the file.
        expected: expected md5 in hexadecimal.
        remedy: what to do if it is another one.

    Raises:
        DataError: if it is missing, or another one.
    """
    try:
        wrong = wrong_checksum(path, "md5", expected)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}; {remedy}") from error
    if wrong:
        raise DataError(f"{path} is not the expected file: {wrong}; {remedy}")

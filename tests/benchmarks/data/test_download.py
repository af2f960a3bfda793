"""Downloads against a server on this machine that misbehaves in chosen ways."""

import bz2
import gzip
import hashlib
import lzma
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.data.files.download import RetryPolicy, download, read_archive
from metricopt.errors import ConfigError, DataError

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()
IMPATIENT = RetryPolicy(attempts=1, timeout_seconds=2.0, pause_seconds=0.0)
PATIENT = RetryPolicy(attempts=3, timeout_seconds=2.0, pause_seconds=0.0)


@dataclass
class Site:
    """What the server serves, and what it was asked."""

    address: str
    ranges: list[str | None] = field(default_factory=list)
    tear_first: int = 0
    fail_first: int = 0
    knows_ranges: bool = True


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site = self.site
        wanted = self.headers.get("Range")
        site.ranges.append(wanted)
        if site.fail_first > 0:
            site.fail_first -= 1
            return self.send_error(503)
        if self.path == "/page":
            return self._send(b"\n<!DOCTYPE html><html>moved</html>")
        if self.path != "/file":
            return self.send_error(404)
        if wanted and site.knows_ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            return self._send_from(start)
        if site.tear_first > 0:
            site.tear_first -= 1
            return self._send(CONTENT, cut=100_000)
        return self._send(CONTENT)

    def _send_from(self, start: int) -> None:
        if start >= len(CONTENT):
            return self.send_error(416)
        span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        return self._send(CONTENT[start:], status=206, content_range=span)

    def _send(
        self,
        body: bytes,
        *,
        cut: int | None = None,
        status: int = 200,
        content_range: str | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(body[:cut])

    def log_message(self, *args: object) -> None:
        """Keep the test output clean."""


@pytest.fixture
def site(monkeypatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = type("SiteHandler", (Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.site = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield handler.site
        server.shutdown()
        thread.join()


def visible(folder) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


@pytest.mark.parametrize(
    "checks", [{}, {"sha256": SHA256}, {"sha256": SHA256[:8]}, {"md5": MD5.upper()}]
)
def test_delivers_the_file_into_a_new_folder(site, tmp_path, checks):
    target = tmp_path / "deep" / "file.bin"
    assert download([f"{site.address}/file"], target, **checks) == target
    assert target.read_bytes() == CONTENT
    assert visible(target.parent) == ["file.bin"]


def test_existing_file_is_left_alone(site, tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"mine")
    download([f"{site.address}/file"], target)
    assert target.read_bytes() == b"mine"
    assert site.ranges == []
    with pytest.raises(DataError, match=f"expected md5 {MD5}, got "):
        download([f"{site.address}/file"], target, md5=MD5)
    assert target.read_bytes() == b"mine"


def test_torn_transfer_resumes_within_one_call(site, tmp_path):
    site.tear_first = 1
    target = tmp_path / "file"
    download([f"{site.address}/file"], target, md5=MD5, policy=PATIENT)
    assert target.read_bytes() == CONTENT
    assert site.ranges == [None, "bytes=100000-"]


def test_torn_transfer_resumes_in_the_next_call(site, tmp_path):
    site.tear_first = 1
    target = tmp_path / "file"
    reason = f"the connection broke after 100000 of {len(CONTENT)} bytes"
    with pytest.raises(DataError, match=reason):
        download([f"{site.address}/file"], target, policy=IMPATIENT)
    assert not target.exists()
    assert len(visible(tmp_path)) == 1
    download([f"{site.address}/file"], target, policy=IMPATIENT)
    assert target.read_bytes() == CONTENT
    assert site.ranges == [None, "bytes=100000-"]
    assert visible(tmp_path) == ["file"]


def test_server_without_ranges_sends_all_again(site, tmp_path):
    site.tear_first, site.knows_ranges = 1, False
    download([f"{site.address}/file"], tmp_path / "file", policy=PATIENT)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_part_longer_than_the_file_is_dropped(site, tmp_path):
    site.tear_first = 1
    with pytest.raises(DataError):
        download([f"{site.address}/file"], tmp_path / "file", policy=IMPATIENT)
    (tmp_path / visible(tmp_path)[0]).write_bytes(CONTENT + b"more")
    download([f"{site.address}/file"], tmp_path / "file", policy=PATIENT)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_server_error_is_tried_again(site, tmp_path):
    site.fail_first = 2
    download([f"{site.address}/file"], tmp_path / "file", policy=PATIENT)
    assert len(site.ranges) == 3


def test_web_page_instead_of_the_file(site, tmp_path):
    with pytest.raises(DataError, match="got a web page instead of the file"):
        download([f"{site.address}/page"], tmp_path / "file", policy=PATIENT)
    assert visible(tmp_path) == []
    assert len(site.ranges) == 1


def test_wrong_checksum_leaves_nothing(site, tmp_path):
    wrong = "0" * 64
    with pytest.raises(DataError, match=f"expected sha256 {wrong}, got {SHA256}"):
        download([f"{site.address}/file"], tmp_path / "file", sha256=wrong)
    assert visible(tmp_path) == []


def test_next_mirror_after_404(site, tmp_path):
    urls = [f"{site.address}/gone", f"{site.address}/page", f"{site.address}/file"]
    download(urls, tmp_path / "file", md5=MD5, policy=PATIENT)
    assert visible(tmp_path) == ["file"]
    assert len(site.ranges) == 3


def test_every_mirror_is_named_when_all_fail(site, tmp_path):
    urls = [f"{site.address}/gone", "http://127.0.0.1:1/file"]
    with pytest.raises(DataError) as caught:
        download(urls, tmp_path / "file", policy=IMPATIENT)
    text = str(caught.value)
    assert text.startswith("cannot download file; ")
    assert f"{urls[0]}: the server answered 404 Not Found" in text
    assert f"{urls[1]}: " in text and "refused" in text


def test_file_address(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    target = tmp_path / "target"
    download([source.as_uri()], target, md5=MD5)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("urls", "error", "text"),
    [
        (["ftp://host/file"], ConfigError, "expected an http, https or file address"),
        (["/etc/passwd"], ConfigError, "expected an http, https or file address"),
        (["data:,x"], ConfigError, "expected an http, https or file address"),
        ([], ConfigError, "at least one address"),
        (["http://127.0.0.1:1/x"], DataError, "cannot write to .*METRICOPT_DATA"),
    ],
)
def test_what_cannot_be_downloaded_is_one_sentence(tmp_path, urls, error, text):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(error, match=text):
        download(urls, tmp_path / "taken" / "file")


def test_concurrent_calls_download_once(site, tmp_path):
    target = tmp_path / "file"
    url = [f"{site.address}/file"]
    threads = [threading.Thread(target=download, args=(url, target)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() == CONTENT
    assert len(site.ranges) == 1


ARCHIVES = [
    ("data.gz", gzip.compress),
    ("data.xz", lzma.compress),
    ("data.bz2", bz2.compress),
]


@pytest.mark.parametrize(("file", "pack"), [*ARCHIVES, ("data.t", bytes)])
def test_archives_are_unpacked_and_damaged_ones_named(tmp_path, file, pack):
    path = tmp_path / file
    path.write_bytes(pack(CONTENT))
    assert read_archive(path, name="a9a") == CONTENT
    if pack is not bytes:
        repair = "delete it and run `./reproduce.sh data fetch a9a`"
        path.write_bytes(pack(CONTENT)[:-20])
        with pytest.raises(DataError) as caught:
            read_archive(path, name="a9a")
        assert str(caught.value) == f"{path} is incomplete; {repair}"
        path.write_bytes(b"plain text, no archive at all")
        with pytest.raises(DataError, match=rf"cannot be read .*; {repair}"):
            read_archive(path, name="a9a")


def test_archive_with_damaged_bytes(tmp_path):
    packed = bytearray(gzip.compress(CONTENT))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "data.gz").write_bytes(packed)
    with pytest.raises(DataError, match="delete it and run"):
        read_archive(tmp_path / "data.gz", name="a9a")


def test_archive_missing_web_page_or_too_large(tmp_path):
    path = tmp_path / "data"
    with pytest.raises(DataError, match=r"is missing; run `\./reproduce.sh data fetch"):
        read_archive(path, name="a9a")
    path.write_text("<html>captive portal</html>")
    with pytest.raises(DataError, match="is a web page, not data"):
        read_archive(path, name="a9a")
    path.write_bytes(bytes(101))
    with pytest.raises(DataError, match="unpacks to more than 100 bytes"):
        read_archive(path, name="a9a", max_bytes=100)


def test_archive_with_another_checksum(tmp_path):
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(CONTENT, mtime=0))
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    assert read_archive(path, name="a9a", md5=md5.upper()) == CONTENT
    with pytest.raises(DataError) as caught:
        read_archive(path, name="a9a", md5=MD5)
    assert str(caught.value) == (
        f"{path} is not the expected file: expected md5 {MD5}, got {md5}; "
        "delete it and run `./reproduce.sh data fetch a9a`"
    )

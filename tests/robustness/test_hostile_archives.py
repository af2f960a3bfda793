"""Archives that explode, lead out, lead back, or hold something twice."""

import bz2
import gc
import gzip
import lzma
import os
import tarfile
import traceback
import zipfile
from typing import ClassVar

import pytest

from benchmarks.data.files import readers
from benchmarks.data.files.archives import TarReader, ZipReader
from benchmarks.data.files.download import download, read_archive
from benchmarks.data.files.readers import LARGEST, JoinedReader
from benchmarks.data.registry import find_any
from tests.robustness.hostile import (
    assert_refused,
    relabelled,
    resized,
    tarred,
    uncollected,
    within,
    zipped,
)

WAY_OUT = "delete it and get it again"


def zip_reader(path):
    return ZipReader(path, "list.txt", remedy=WAY_OUT)


def tar_reader(path):
    return TarReader(path, "d/", remedy=WAY_OUT)


def of_zip(folder, *members, **options):
    marker = ("d/list.txt", b"a.jpg")
    return zipped(folder / "a.zip", [*members, marker], **options)


@pytest.mark.parametrize(
    ("claims", "options", "said"),
    [
        ({"size": 3 << 30}, {}, f"has 3,221,225,472 bytes, expected {LARGEST:,} or l"),
        ({"size": 10}, {}, "cannot be read: Bad CRC-32"),
        ({"size": 1 << 20}, {}, "is cut off: expected 1,048,576 bytes, got 4,000"),
        ({"flags": 1}, {}, "is encrypted, password required"),
        ({"method": 99}, {}, "compressed by method 99, expected none or deflate"),
        ({}, {"compression": zipfile.ZIP_LZMA}, "compressed by method 14, expected"),
        ({}, {"compression": zipfile.ZIP_BZIP2}, "compressed by method 12, expected"),
    ],
)
def test_a_zip_file_that_lies_of_its_files_is_not_believed(
    tmp_path, claims, options, said
):
    path = of_zip(tmp_path, ("d/a.jpg", bytes(4_000)), **options)
    relabelled(path, "d/a.jpg", **claims)
    with within(megabytes=200), assert_refused(f"a.jpg of {path} ", said):
        zip_reader(path).read("a.jpg")


def test_a_file_that_unpacks_to_more_than_it_claims_is_not_unpacked(tmp_path):
    packed = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 1}
    path = of_zip(tmp_path, ("d/a.jpg", bytes(64 << 20)), **packed)
    relabelled(path, "d/a.jpg", size=1_000)
    with within(megabytes=40), assert_refused("cannot be read: Bad CRC-32"):
        zip_reader(path).read("a.jpg")


def cut(content):
    return content[: len(content) // 2]


def zeros(content):
    return bytes(len(content))


def no_utf8_name(content):
    at = content.rindex(b"PK\x01\x02\x14")
    changed = bytearray(content)
    changed[at + 9] |= 8  # names are UTF-8
    name = changed.index(b"d/list.txt", at)
    changed[name] = 0xFF
    return bytes(changed)


@pytest.mark.parametrize(
    "damage", [cut, zeros, no_utf8_name, lambda content: b"", lambda content: b"PK"]
)
def test_a_damaged_zip_file_names_the_way_out(tmp_path, damage):
    path = of_zip(tmp_path, ("d/a.jpg", b"one"))
    path.write_bytes(damage(path.read_bytes()))
    with assert_refused(f"{path} ", WAY_OUT):
        zip_reader(path)


def test_a_zip_file_whose_parts_were_moved_is_not_read(tmp_path):
    path = of_zip(tmp_path, ("d/a.jpg", b"one"))
    content = path.read_bytes()
    at = content.rindex(b"PK\x05\x06") + 16
    path.write_bytes(content[:at] + b"\xff\xff\xff\x7f" + content[at + 4 :])
    with assert_refused(f"a.jpg of {path} cannot be read: "):
        zip_reader(path).read("a.jpg")


def test_names_of_a_zip_file_that_lead_out_are_names_alone(tmp_path):
    link = zipfile.ZipInfo("d/link.jpg")
    link.external_attr = 0o120777 << 16
    members = [("../out.jpg", b"o"), ("/etc/out.jpg", b"o"), (link, b"/etc/passwd")]
    reader = zip_reader(of_zip(tmp_path, *members))
    assert set(reader.sizes) == {"link.jpg", "list.txt"}
    assert reader.read("link.jpg") == b"/etc/passwd"
    with assert_refused("../out.jpg of ", "cannot be read: there is none"):
        reader.read("../out.jpg")
    assert [path.name for path in tmp_path.rglob("*")] == ["a.zip"]


def of_tar(folder, *members, name="a.tar"):
    return tarred(folder / name, [*members, ("d/list.txt", b"a.jpg", {})])


@pytest.mark.parametrize(
    "size", [-1024, -512, -1, -(1 << 40), 1 << 20, 1 << 50, 1 << 70]
)
def test_a_tar_file_that_leads_back_or_claims_too_much_is_refused(tmp_path, size):
    path = of_tar(tmp_path, ("d/b.jpg", b"b", {}), ("d/a.jpg", b"one", {}))
    resized(path, "d/a.jpg", size)
    with within(megabytes=200), assert_refused(f"{path} cannot be read (", WAY_OUT):
        tar_reader(path)


def test_a_file_of_a_tar_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LARGEST", 1_000)
    path = of_tar(tmp_path, ("d/a.jpg", bytes(1_001), {}))
    with assert_refused(f"a.jpg of {path} has 1,001 bytes, expected 1,000 or less"):
        tar_reader(path).read("a.jpg")


def test_a_file_stored_without_its_gaps_is_not_taken_as_it_lies(tmp_path):
    """Its size is that of the whole file: what follows in the archive was read."""
    gaps = {"type": tarfile.GNUTYPE_SPARSE}
    path = of_tar(tmp_path, ("d/a.jpg", b"one", gaps))
    with assert_refused(f"{path} cannot be read (d/a.jpg is stored without its gaps)"):
        tar_reader(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_may_not_hold_a_name_twice(tmp_path):
    """The last of both was read, whichever the author meant."""
    twice = [("d/a.jpg", b"one"), ("d/a.jpg", b"other")]
    path = of_zip(tmp_path, *twice)
    with assert_refused(f"{path} has 1 names that are there twice (d/a.jpg)", WAY_OUT):
        zip_reader(path)
    path = of_tar(tmp_path, *((*each, {}) for each in twice))
    with assert_refused(f"{path} has 1 names that are there twice (a.jpg)", WAY_OUT):
        tar_reader(path)


LINKS = [
    {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
    {"type": tarfile.LNKTYPE, "linkname": "d/list.txt"},
    {"type": tarfile.SYMTYPE, "linkname": "a.jpg"},
    {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5},
    {"type": tarfile.BLKTYPE},
    {"type": tarfile.FIFOTYPE},
    {"type": tarfile.DIRTYPE},
]


@pytest.mark.parametrize("kind", LINKS)
def test_links_and_devices_of_a_tar_file_are_no_files(tmp_path, kind):
    path = of_tar(tmp_path, ("d/a.jpg", b"", kind))
    reader = JoinedReader([tar_reader(path)])
    assert set(reader.sizes) == {"list.txt"}
    with assert_refused("a.jpg is in none of the archives"):
        reader.read("a.jpg")
    with assert_refused(f"{path} must hold a.jpg, got none"):
        tar_reader(path).read("a.jpg")


def long_names(content):
    """Headers that each announce the name of the next one, a thousand deep."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 1
    return (entry.tobuf() + bytes(512)) * 2_000 + content


def negative_by_pax(content):
    """A size in an extended header, which takes precedence."""
    entry, body = tarfile.TarInfo("pax"), b"14 size=-1024\n"
    entry.type, entry.size = tarfile.XHDTYPE, len(body)
    return entry.tobuf() + body.ljust(512, b"\0") + content


@pytest.mark.parametrize(
    "damage", [long_names, negative_by_pax, cut, lambda content: b"text"]
)
def test_a_damaged_tar_file_names_the_way_out(tmp_path, damage):
    path = of_tar(tmp_path, ("d/a.jpg", bytes(4_000), {}))
    path.write_bytes(damage(path.read_bytes()))
    with uncollected(), within(), assert_refused(f"{path} cannot be read (", WAY_OUT):
        tar_reader(path)


class Cycle:
    """Garbage of another test, whose finaliser needs some of the stack."""

    ended: ClassVar[list[int]] = []

    def __init__(self):
        self.own = self

    def __del__(self):
        self.ended.append(len(traceback.format_stack(limit=5)))


def test_garbage_of_other_tests_is_not_collected_on_a_full_stack(tmp_path, monkeypatch):
    path, read = of_tar(tmp_path), tarfile.TarInfo.frombuf.__func__
    path.write_bytes(long_names(path.read_bytes()))

    def frombuf(cls, *given):
        Cycle()  # at every depth, where a collection after any allocation would find it
        return read(cls, *given)

    monkeypatch.setattr(tarfile.TarInfo, "frombuf", classmethod(frombuf))
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with uncollected():
            with assert_refused(f"{path} cannot be read (", WAY_OUT):
                tar_reader(path)
            assert not Cycle.ended
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(Cycle.ended) > 100


@pytest.mark.parametrize(
    "name", ["imagenette-subset", "tinyimagenet-fewshot100", "voc2007-subset"]
)
def test_a_damaged_subset_names_the_way_out(tmp_path, name):
    source = find_any(name)
    path = tmp_path / source.folder / source.archive
    path.parent.mkdir()
    path.write_bytes(b"PK\x03\x04 torn")
    way_out = f"put the right file in the place of {path}, which has no download"
    with assert_refused(f"{path} cannot be read (", way_out):
        source.load(tmp_path, offline=True)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_packed_text_that_explodes_is_not_unpacked_whole(tmp_path, suffix):
    pack = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}[suffix]
    path = tmp_path / f"a.data{suffix}"
    with pack(path, "wb") as file:
        file.write(bytes(3 << 20))
    with within(megabytes=200), assert_refused(f"{path} unpacks to more than 1048576"):
        read_archive(path, name="a", max_bytes=1 << 20)


def test_a_file_that_is_there_and_another_one_is_to_be_deleted(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"other")
    said = f"{path} is not the expected file: expected md5 00, got "
    with assert_refused(said, "; delete it and run this again"):
        download(["https://nowhere.invalid/a.zip"], path, md5="00")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_in_the_place_of_a_download_is_named(tmp_path, make):
    make(tmp_path / "a.zip")
    with within(), assert_refused("a.zip must be a file, got a folder or a device"):
        download(["https://nowhere.invalid/a.zip"], tmp_path / "a.zip", md5="00")

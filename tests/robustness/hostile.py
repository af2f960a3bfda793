"""Damaged and hostile files, and what is expected of an error."""

import gc
import io
import os
import resource
import signal
import struct
import tarfile
import zipfile
import zlib
from contextlib import contextmanager

import pytest
import torch
from PIL import Image

from metricopt.errors import DataError

LONGEST = 700
"""Characters of an error that is still one sentence."""


@contextmanager
def assert_refused(*parts):
    """Expect a DataError of one line that says all of this, and no address."""
    with pytest.raises(DataError) as caught:
        yield
    told = str(caught.value)
    assert [part for part in parts if part not in told] == [], told
    assert told.isprintable() and " at 0x" not in told
    assert len(told) < LONGEST


@contextmanager
def within(seconds=10, megabytes=None):
    """Stop what hangs, and what takes much more memory than was taken before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)
    if megabytes is not None and os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (megabytes << 20), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def uncollected():
    """Let no cycles of other tests be collected while the stack is all but full.

    Their finalisers would run out of it, and the error of one is printed by pytest,
    whose formatting runs out of it, too: that fails the test that fills the stack.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _stop(number, frame):
    raise TimeoutError("it hangs")


def encoded(kind, mode="RGB", size=(40, 30), **options):
    """An image file of smooth colours."""
    image = Image.linear_gradient("L").resize(size).convert(mode)
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def png(wide, high, *chunks, depth=8, colour=0):
    """A PNG file that claims a size, with these chunks (name, content) in it."""
    header = struct.pack(">IIBBBBB", wide, high, depth, colour, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IEND", b"")]
    packed = (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def with_exif(jpeg, exif):
    """A JPEG file with an EXIF block of any content before all others."""
    body = b"Exif\0\0" + exif
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def zipped(path, members, **options):
    """A zip file of members (name, content), which may have equal names."""
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def relabelled(path, name, **claims):
    """Change what a zip file claims of a member, and leave its content."""
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02", start)
    while content[at + 46 : at + 46 + len(name)] != name.encode():
        at = content.index(b"PK\x01\x02", at + 1)
    places = {"flags": (8, "<H"), "method": (10, "<H"), "size": (24, "<I")}
    for claim, value in claims.items():
        offset, kind = places[claim]
        struct.pack_into(kind, content, at + offset, value)
    path.write_bytes(content)
    return path


def tarred(path, members):
    """A tar file of members (name, content, changes of the header)."""
    with tarfile.open(path, "w") as archive:
        for name, content, changes in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            for key, value in changes.items():
                setattr(entry, key, value)
            archive.addfile(entry, io.BytesIO(content) if entry.isreg() else None)
    return path


def resized(path, name, size):
    """Let a tar file claim another size of a member, which may be negative."""
    content = bytearray(path.read_bytes())
    at = content.index(name.encode().ljust(100, b"\0"))
    head = content[at : at + 512]
    # Numbers that eight octal digits do not hold are binary after a mark.
    mark = b"\x80" if size >= 0 else b"\xff"
    head[124:136] = mark + (size % 256**11).to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    content[at : at + 512] = head
    path.write_bytes(content)
    return path


def torch_bytes(value):
    """What `torch.save` writes."""
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


def packed_again(content):
    """A file of torch whose parts are compressed, which torch never does itself."""
    found = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for member in old.namelist():
            new.writestr(member, old.read(member))
    return found.getvalue()

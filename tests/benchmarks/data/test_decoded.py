"""Decoded images: squares, the file they are kept in, and what does not decode."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest
import torch
from PIL import Image

from benchmarks.data.files import decoded
from benchmarks.data.files.decoded import decoded_at, kept_at, pixels, square
from benchmarks.data.files.readers import FolderReader
from benchmarks.data.listed.contract import LISTED, listed
from tests.benchmarks.data.listed.miniature import write_miniature
from tests.source_tree import ROOT

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def images(tmp_path):
    return listed(FolderReader(write_miniature(tmp_path / "mini")), "mini")


@pytest.mark.parametrize("size", [(40, 60), (60, 40), (33, 33), (7, 90)])
def test_both_ends_of_an_image_are_kept(size):
    image = Image.new("RGB", size, "red")
    wide, high = size
    image.paste("blue", (0, 0, max(1, wide // 4), high))
    image.paste("lime", (0, 0, wide, high // 3))
    found = square(image, 32)
    assert found.size == (32, 32)
    corners = [found.getpixel(place) for place in ((16, 0), (0, 31), (31, 31))]
    assert corners == [(0, 255, 0), (0, 0, 255), (255, 0, 0)]


def test_a_file_and_decoding_when_needed_give_the_same(images):
    kept, lazy = pixels(images, 24), pixels(images, 24, limit=1_000)
    assert (kept.func, lazy.func) == (kept_at, decoded_at)
    places = torch.tensor([3, 0, 29, 3])
    assert kept(places).shape == (4, 24, 24, 3)
    assert torch.equal(kept(places), lazy(places))


def test_images_are_decoded_once(images, monkeypatch):
    pixels(images, 24)
    monkeypatch.setattr(decoded, "_write", None)
    assert pixels(images, 24)(torch.arange(2)).shape == (2, 24, 24, 3)
    with pytest.raises(TypeError):
        pixels(images, 25)


def test_images_too_many_for_a_file_are_tried_once(images, monkeypatch):
    places = torch.arange(3)
    expected = pixels(images, 24, limit=1)(places)
    monkeypatch.setattr(decoded, "tqdm", None)
    assert torch.equal(pixels(images, 24, limit=1)(places), expected)


def test_a_killed_decoding_leaves_no_file_that_is_taken_for_whole(tmp_path):
    program = textwrap.dedent(
        """
        import time
        from benchmarks.data.files import decoded
        from benchmarks.data.listed.contract import LISTED
        slow, decoded.AT_ONCE = decoded._decode, 8
        def wait(*arguments):
            print("decoding", flush=True)
            time.sleep(0.2)
            return slow(*arguments)
        decoded._decode = wait
        decoded.pixels(LISTED.get("drawn-shapes")().load(offline=True), 16)
        """
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout.readline() == b"decoding\n"
        assert process.stdout.readline() == b"decoding\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    images = LISTED.get("drawn-shapes")().load(offline=True)
    started = time.time()
    found = pixels(images, 16)(torch.arange(len(images)))
    lazy = pixels(images, 16, limit=1)(torch.arange(len(images)))
    assert torch.equal(found, lazy)
    whole = list((tmp_path / "cache" / "decoded").glob("*.npy"))
    assert len(whole) == 1 and whole[0].stat().st_mtime >= started - 1

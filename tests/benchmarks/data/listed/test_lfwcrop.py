"""Faces of contact sheets: who trains and who does not, and which tile is whose."""

import io
import os
import zipfile

import pytest
import torch
from PIL import Image

from benchmarks.data.listed import lfwcrop
from benchmarks.data.listed.contract import LISTED
from benchmarks.data.listed.lfwcrop import LFWCrop
from metricopt.errors import DataError

NAMES = ["Ann_A_0001", "Ann_A_0002", "Bob_0001", "Cid_0001", "Cid_0002", "Dee_0001"]
PAIRS = """fold,first,second,same
1,Ann_A_0001,Ann_A_0002,1
3,Ann_A_0001,Bob_0001,0
4,Cid_0001,Cid_0002,1
"""


@pytest.fixture
def faces(tmp_path, monkeypatch):
    """Six faces, of one shade each, on two sheets of three faces, two in a row."""
    monkeypatch.setattr(lfwcrop, "EACH", 3)
    monkeypatch.setattr(lfwcrop, "ACROSS", 2)
    monkeypatch.setattr(LFWCrop, "expected", (2, 4, 1, 2))
    folder = tmp_path / "lfwcrop"
    folder.mkdir()
    with zipfile.ZipFile(folder / "lfwcrop.zip", "w") as archive:
        archive.writestr("names.txt", "\n".join(NAMES))
        archive.writestr("view2_pairs.csv", PAIRS)
        for sheet in range(2):
            image = Image.new("RGB", (128, 128))
            for tile in range(3):
                shade = 40 * (3 * sheet + tile)
                corner = (64 * (tile % 2), 64 * (tile // 2))
                image.paste((shade,) * 3, (*corner, corner[0] + 64, corner[1] + 64))
            content = io.BytesIO()
            image.save(content, "WEBP", lossless=True)
            archive.writestr(f"sheets/{3 * sheet:05d}.webp", content.getvalue())
    return tmp_path


def test_people_of_the_first_folds_are_the_test_and_single_faces_are_left_out(faces):
    images = LFWCrop().load(faces, offline=True)
    assert images.paths == tuple(f"{NAMES[place]}.png" for place in (3, 4, 0, 1, 2))
    assert images.train_rows == 2
    assert images.pairs.tolist() == [[2, 3], [2, 4]]
    assert images.classes.tolist() == [3, 3, 1, 1, 2]


def test_every_face_is_cut_from_its_place(faces):
    images = LFWCrop().load(faces, offline=True)
    shades = [images.read(place).getpixel((5, 60))[0] for place in range(5)]
    assert shades == [120, 160, 0, 40, 80]
    assert {images.read(place).size for place in range(4)} == {(64, 64)}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"lfwcrop needs lfwcrop.zip .* no download"):
        LFWCrop().load(tmp_path)


@pytest.mark.skipif("METRICOPT_DATA" not in os.environ, reason="needs the data sets")
def test_the_real_faces_share_no_person():
    images = LISTED.get("lfwcrop")().load(offline=True)
    train, test = images.classes[:6_613], images.classes[6_613:]
    assert not torch.isin(train, test).any()
    assert images.pairs.shape == (1_800, 2)
    same = images.classes[images.pairs[:, 0]] == images.classes[images.pairs[:, 1]]
    assert same.view(3, 2, 300).all(2).tolist() == [[True, False]] * 3
    assert not same.view(3, 2, 300)[:, 1].any()
    folds = [
        set(images.classes[part].flatten().tolist()) for part in images.pairs.split(600)
    ]
    assert not folds[0] & folds[1] and not folds[1] & folds[2]
    assert images.paths[0] == "Aaron_Peirsol_0001.png"
    assert images.read(6_613).size == (64, 64)

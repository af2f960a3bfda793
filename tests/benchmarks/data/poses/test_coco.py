"""COCO key points in the layout of the official files, small."""

import io
import json
import zipfile

import pytest
from PIL import Image

from benchmarks.data.poses.coco import COCO, CocoKeypoints
from metricopt.errors import DataError

YEARS = ("train2017", "val2017")


def person(number, image, seen=2, **changes):
    marks = [[20 + j, 30 + 2 * j, seen if j % 3 else 0] for j in range(17)]
    return {
        "id": number,
        "image_id": image,
        "keypoints": [value for mark in marks for value in mark],
        "num_keypoints": 11,
        "bbox": [15.0, 25.0, 30.0, 50.0],
        "area": 700.0,
        "iscrowd": 0,
    } | changes


def annotations(*people, image=7):
    images = [{"id": image, "file_name": "a.jpg", "width": 80, "height": 90}]
    return {"images": images, "annotations": list(people)}


def picture():
    content = io.BytesIO()
    Image.new("RGB", (80, 90), (40, 50, 60)).save(content, "JPEG")
    return content.getvalue()


def write(root, train, test=None, *, packed=False):
    folder = root / "coco"
    folder.mkdir(exist_ok=True)
    files = {f"{year}/a.jpg": picture() for year in YEARS}
    for year, found in zip(
        YEARS, (train, test or annotations(person(9, 7))), strict=True
    ):
        name = f"annotations/person_keypoints_{year}.json"
        files[name] = json.dumps(found).encode()
    if packed:
        for part in ("annotations", *YEARS):
            name = "annotations_trainval2017" if part == "annotations" else part
            with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
                archive.writestr(f"{part}/", b"")
                for path, content in files.items():
                    if path.startswith(part):
                        archive.writestr(path, content)
        return root
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return root


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(CocoKeypoints, "expected", (2, 1))
    return CocoKeypoints()


@pytest.mark.parametrize("packed", [False, True])
def test_people_are_read(small, tmp_path, packed):
    train = annotations(
        person(1, 7),
        person(2, 7, seen=1),
        person(3, 7, iscrowd=1),
        person(4, 7, num_keypoints=0),
    )
    people = small.load(write(tmp_path, train, packed=packed), offline=True)
    assert len(people) == 3
    assert people.joints[0, 1].tolist() == [21, 32, 1]
    assert people.joints[0, 0, 2] == 0
    assert people.areas.tolist() == [700.0] * 3
    # 30 x 50 becomes 37.5 x 50, a quarter larger.
    assert people.boxes[0].tolist() == [6.5625, 18.75, 46.875, 62.5]
    assert people.series[0] == people.series[1]
    assert people.read(2).size == (80, 90)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"images": []}, "holds no key points of people: KeyError 'annotations'"),
        (annotations(person(1, 8)), "KeyError 8"),
        (annotations(person(1, 7, keypoints=[1, 2])), "2 numbers instead of 51"),
        (annotations(person(1, 7, bbox=None)), "holds no key points of people"),
        (annotations(), r"needs people in its part train, got none"),
    ],
)
def test_malformed_annotations_are_refused(small, tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        small.load(write(tmp_path, content), offline=True)


def test_missing_files_are_refused(small, tmp_path):
    with pytest.raises(
        DataError, match=r"needs annotations_trainval2017\.zip, train2017"
    ):
        small.load(tmp_path, offline=True)
    root = write(tmp_path, annotations(person(1, 7), person(2, 7)))
    (root / "coco" / "val2017" / "a.jpg").unlink()
    with pytest.raises(DataError, match="images of its annotations missing"):
        small.load(root, offline=True)


def test_mirrored_key_points_trade_sides():
    names = [COCO.joints[place] for place in COCO.mirrored.tolist()]
    assert names[0] == "nose" and names[1:3] == ["right_eye", "left_eye"]

"""Leeds Sports Pose: the real files, and what is refused of others."""

import io
import zipfile

import pytest
import torch
from PIL import Image

from benchmarks.data.poses.contract import POSES
from benchmarks.data.poses.leeds import LIST, LeedsSubset, read_joints
from benchmarks.data.poses.sports_joints import LEEDS, torsos
from benchmarks.data.registry import all_names, find_any
from benchmarks.runs.paths import data_root
from metricopt.errors import DataError

HEADER = "image,upright," + ",".join(f"{n}_{p}" for n in LEEDS.joints for p in "xyv")


@pytest.fixture
def small(monkeypatch):
    """A data set with as many people as a test writes."""
    monkeypatch.setattr(LeedsSubset, "expected", (2, 1))
    monkeypatch.setattr(LeedsSubset, "digest", "")
    return LeedsSubset()


def joints(**changes):
    """A line of joints by name, all labelled at places of their own."""
    found = []
    for place, name in enumerate(LEEDS.joints):
        found += changes.get(name, [10 + 5 * place, 20 + 7 * place, 1])
    return found


PEOPLE = {
    "train/im00001.webp": joints(),
    "val/im00140.webp": joints(r_wrist=[0, 0, 0]),
    "test/im00250.webp": joints(),
}


def write(root, people=PEOPLE, header=HEADER, images=None):
    folder = root / "lspet_subset"
    folder.mkdir(exist_ok=True)
    lines = [header, *(f"{n},1,{','.join(map(str, v))}" for n, v in people.items())]
    content = io.BytesIO()
    Image.new("RGB", (120, 160), (9, 99, 199)).save(content, "WEBP")
    with zipfile.ZipFile(folder / LeedsSubset.archive, "w") as archive:
        archive.writestr(LIST, "\n".join(lines) + "\n")
        for name in people if images is None else images:
            archive.writestr(name, content.getvalue())
    return root


def test_it_is_read(small, tmp_path):
    people = small.load(write(tmp_path), offline=True)
    assert len(people) == 3 and people.series.tolist() == [0, 1, 2]
    assert {k: v.tolist() for k, v in people.parts.items()} == {
        "train": [0, 1],
        "test": [2],
    }
    assert people.joints[1, 6].tolist() == [0, 0, 0]
    # Shoulder 9 and hip 2 are farther apart than 8 and 3.
    assert people.references[0].item() == pytest.approx((35**2 + 49**2) ** 0.5)
    assert people.areas[0].item() == pytest.approx(0.53 * 65 * 91)
    assert people.boxes[0].tolist() == pytest.approx([10, 160 / 12, 100, 160 * 5 / 6])
    assert people.read(0).size == (120, 160)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"neck": [130, 20, 1]}, "1 labelled joints outside of their image .*neck of"),
        ({"neck": [30, -2, 1]}, "labelled joints outside of their image"),
        ({"neck": ["nan", 20, 1]}, "1 joints that are no numbers"),
        ({"neck": [30, 20, 2]}, "1 joints that are labelled neither 1 nor 0"),
        ({"neck": ["left", 20, 1]}, "line 2 of joints.csv is malformed"),
        (
            {"l_shoulder": [0, 0, 0], "r_shoulder": [0, 0, 0]},
            "1 people have no shoulder and opposite hip",
        ),
    ],
)
def test_wrong_joints_are_refused(small, tmp_path, change, message):
    people = PEOPLE | {"train/im00001.webp": joints(**change)}
    with pytest.raises(DataError, match=message):
        small.load(write(tmp_path, people), offline=True)


def test_a_joint_without_a_label_may_be_anywhere(small, tmp_path):
    people = PEOPLE | {"train/im00001.webp": joints(neck=[-500, 900, 0])}
    assert len(small.load(write(tmp_path, people), offline=True)) == 3


def test_people_without_any_label_are_refused(small, tmp_path):
    bare = {name: [0, 0, 0] for name in LEEDS.joints}
    people = PEOPLE | {"train/im00001.webp": joints(**bare)}
    with pytest.raises(DataError, match="1 people without a labelled joint"):
        small.load(write(tmp_path, people), offline=True)


def test_wrong_files_are_refused(small, tmp_path):
    with pytest.raises(DataError, match=r"needs lspet_subset\.zip"):
        small.load(tmp_path, offline=True)
    with pytest.raises(DataError, match="images of its list missing"):
        small.load(write(tmp_path, images=list(PEOPLE)[:2]), offline=True)
    with pytest.raises(DataError, match="oddly named images"):
        small.load(write(tmp_path, PEOPLE | {"x.webp": joints()}), offline=True)
    with pytest.raises(DataError, match=r"\(2, 1\) people to train and test, got"):
        small.load(write(tmp_path, dict(list(PEOPLE.items())[1:])), offline=True)


def test_other_columns_are_refused():
    with pytest.raises(DataError, match="got 43 columns, without head_top_v"):
        read_joints(HEADER.removesuffix(",head_top_v") + "\n")
    with pytest.raises(DataError, match="must list a person, got none"):
        read_joints(HEADER + "\n")


def test_a_mirrored_skeleton_trades_left_and_right():
    names = [LEEDS.joints[place] for place in LEEDS.mirrored.tolist()]
    for name, other in zip(LEEDS.joints, names, strict=True):
        assert other == {"r": "l", "l": "r"}.get(name[0], name[0]) + name[1:]
    assert {place for pair in LEEDS.bones for place in pair} == set(range(14))
    assert torsos(torch.tensor([joints()]).reshape(1, 14, 3).float()).item() > 0


@pytest.mark.parametrize("name", ["lspet-subset", "lspet-upright", "drawn-people"])
def test_the_real_people_are_those_expected(name):
    source = find_any(name)
    assert name in POSES and name in all_names()
    if source.status()[0].state == "missing":
        pytest.skip(f"no copy of {name} at hand")
    people = source.load(data_root(), offline=True)
    assert len(people) == source.count
    assert people.digest == source.digest or not source.digest
    train, test = (people.series[people.parts[p]] for p in ("train", "test"))
    assert not set(train.tolist()) & set(test.tolist())

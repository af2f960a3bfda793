"""Few-shot data sets: what is in them, and what is said where something is wrong."""

import pytest

from benchmarks.data.few_shot.contract import FEW_SHOT, PARTS, in_part_folders
from benchmarks.data.few_shot.omniglot import Omniglot, OmniglotSmall
from benchmarks.data.few_shot.tinyimagenet_fewshot100 import TinyImageNet100
from benchmarks.data.files.readers import FolderReader
from benchmarks.data.registry import all_names, find_any
from benchmarks.runs.paths import data_root
from metricopt.errors import DataError
from tests.benchmarks.data.few_shot.miniature import (
    archive,
    characters,
    png,
    write_omniglot,
)


@pytest.fixture
def small_sets(tmp_path, monkeypatch):
    """A data root with two small sets, Latin in both."""
    folder = tmp_path / OmniglotSmall.folder
    for top, alphabets in (
        ("images_background_small1", ("Balinese", "Latin")),
        ("images_background_small2", ("Greek", "Latin", "Sanskrit")),
    ):
        archive(folder / f"{top}.zip", characters(top, alphabets))
    monkeypatch.setattr(OmniglotSmall, "expected", (16, 4, 0, 4))
    monkeypatch.setattr(OmniglotSmall, "digest", "")
    return tmp_path


def test_alphabets_in_both_archives_count_once(small_sets):
    images = OmniglotSmall().load(small_sets, offline=True)
    assert images.classes[:3] == (
        "Balinese/character01",
        "Balinese/character02",
        "Greek/character01",
    )
    assert len(images.classes) == 8
    parts = zip(images.classes, images.parts, strict=True)
    tested = {name.partition("/")[0] for name, part in parts if part == "test"}
    assert tested == {"Greek", "Latin"}
    assert images.targets.tolist() == [number for number in range(8) for _ in range(2)]
    assert images.read(0).size == (105, 105)
    assert (images.side, images.ink) == (28, True)


def test_the_archives_are_checked_by_verify(small_sets):
    with pytest.raises(DataError, match=r"small1.zip is not the expected file: .* md5"):
        OmniglotSmall().verify(small_sets)


def test_a_missing_archive_is_named_with_the_command(small_sets):
    (small_sets / OmniglotSmall.folder / "images_background_small2.zip").unlink()
    said = r"needs images_background_small2.zip in .*data fetch omniglot-small"
    with pytest.raises(DataError, match=said):
        OmniglotSmall().load(small_sets, offline=True)
    assert OmniglotSmall().status(small_sets)[0].state == "missing"


def test_other_numbers_of_characters_are_refused(small_sets, monkeypatch):
    monkeypatch.setattr(OmniglotSmall, "expected", (4_840, 192, 0, 50))
    said = (
        r"4,840 images of 192, 0 and 50 classes .*got 16 images of 4, 0 and 4 classes"
    )
    with pytest.raises(DataError, match=said):
        OmniglotSmall().load(small_sets, offline=True)


def test_an_archive_of_another_kind_is_refused(small_sets):
    path = small_sets / OmniglotSmall.folder / "images_background_small1.zip"
    archive(path, {"notes.txt": b"no drawing"})
    with pytest.raises(
        DataError, match="must hold images_background_small1/, got none"
    ):
        OmniglotSmall().load(small_sets, offline=True)
    inside = "images_background_small1/Balinese/0001_01.png"
    archive(path, {inside: png(1)})
    said = r"1 images outside ALPHABET/CHARACTER \(Balinese/0001_01.png\)"
    with pytest.raises(DataError, match=said):
        OmniglotSmall().load(small_sets, offline=True)


def test_the_whole_set_gives_no_parts(tmp_path, monkeypatch):
    write_omniglot(tmp_path, monkeypatch)
    images = Omniglot().load(tmp_path, offline=True)
    assert (len(images), len(images.classes), images.parts) == (8, 4, ())
    assert Omniglot().status(tmp_path)[0].variant.note == ""


def test_archives_come_from_the_official_addresses(small_sets, monkeypatch):
    fetched = {}

    def download(urls, path, **options):
        fetched[path.name] = (urls, options["md5"])
        return path

    monkeypatch.setattr("benchmarks.data.few_shot.omniglot.download", download)
    kept = small_sets / "other"
    paths = Omniglot().fetch(kept, progress=False)
    assert [path.parent for path in paths] == [kept / "omniglot"] * 2
    page = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
    assert fetched["images_evaluation.zip"] == (
        [f"{page}/images_evaluation.zip"],
        "6b91aef0f799c5bb55b94e3f2daec811",
    )
    assert OmniglotSmall().fetch(small_sets) == []


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A writer of a data root with three classes, one in every part."""
    monkeypatch.setattr(TinyImageNet100, "expected", (6, 1, 1, 1))
    monkeypatch.setattr(TinyImageNet100, "digest", "")

    def write(listed=(("train", "n1"), ("val", "n2"), ("test", "n3")), **changes):
        members = {
            f"{part}/{name}/{name}_{number}.JPEG": png(number)
            for part, name in (("train", "n1"), ("val", "n2"), ("test", "n3"))
            for number in range(2)
        }
        lines = "".join(f"{part},{name},a thing\n" for part, name in listed)
        members["classes.csv"] = f"split,wnid,name\n{lines}".encode()
        path = tmp_path / TinyImageNet100.folder / TinyImageNet100.archive
        archive(path, members | changes)
        return tmp_path

    return write


def test_folders_say_the_part_of_a_class(tiny):
    images = TinyImageNet100().load(tiny(), offline=True)
    assert (images.classes, images.parts) == (("n1", "n2", "n3"), PARTS)
    assert images.paths[2] == "val/n2/n2_0.JPEG"


def test_folders_that_differ_from_the_list_are_refused(tiny):
    root = tiny(listed=(("train", "n1"), ("val", "n2"), ("val", "n3")))
    said = r"2 folders that differ from classes.csv \(test/n3, val/n3\)"
    with pytest.raises(DataError, match=said):
        TinyImageNet100().load(root, offline=True)


def test_a_list_without_its_columns_is_refused(tiny):
    root = tiny(**{"classes.csv": b"part,class\n"})
    with pytest.raises(DataError, match="must have split,wnid, got part,class"):
        TinyImageNet100().load(root, offline=True)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("val/n1/more.JPEG", r"1 classes in more than one part \(n1\)"),
        ("more.JPEG", r"1 images outside train\|val\|test/CLASS \(more.JPEG\)"),
    ],
)
def test_no_class_is_in_two_parts(tiny, path, said):
    with pytest.raises(DataError, match=said):
        TinyImageNet100().load(tiny(**{path: png(0)}), offline=True)


def test_a_part_without_a_class_is_named(tmp_path):
    (tmp_path / "train" / "n1").mkdir(parents=True)
    (tmp_path / "train" / "n1" / "a.png").write_bytes(png(0))
    with pytest.raises(DataError, match=r"mini needs val/CLASS/\*.JPEG, got no such"):
        in_part_folders(FolderReader(tmp_path), "mini")


def test_drawn_classes_need_no_file(tmp_path):
    images = find_any("drawn-classes").load(tmp_path, offline=True)
    assert [images.parts.count(part) for part in PARTS] == [20, 6, 10]
    assert images.read(3).tobytes() == images.read(3).tobytes()
    assert images.read(3).tobytes() != images.read(4).tobytes()


def test_few_shot_data_sets_are_found_by_name():
    assert set(FEW_SHOT) <= set(all_names())
    assert {"omniglot", "miniimagenet"} <= set(FEW_SHOT)


@pytest.mark.parametrize("name", ["omniglot-small", "tinyimagenet-fewshot100"])
def test_real_files(name):
    source = find_any(name)
    if source.status()[0].state == "missing":
        pytest.skip(f"{name} is not in {data_root()}")
    images = source.verify()
    each = 20 if name.startswith("omniglot") else 60
    assert images.targets.bincount().tolist() == [each] * len(images.classes)
    assert images.read(len(images) - 1).mode == "RGB"

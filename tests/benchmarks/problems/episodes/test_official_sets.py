"""Episodes of the official data sets, on the same files in miniature."""

from itertools import count, islice

import pytest

from benchmarks.data.few_shot.contract import PARTS
from benchmarks.problems.episodes import class_splits
from benchmarks.problems.episodes.images import ImageEpisodes
from benchmarks.problems.episodes.protocols import as_the_authors, episodes_of
from metricopt.errors import ConfigError
from tests.benchmarks.data.few_shot.miniature import (
    write_miniimagenet,
    write_omniglot,
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty data root with a cache of its own."""
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_miniimagenet(root, monkeypatch):
    names = (f"n{number:08}" for number in count(1))
    sizes = (8, 5, 6)
    classes = {p: [*islice(names, n)] for p, n in zip(PARTS, sizes, strict=True)}
    files = {"numbers": range(10, 210, 10), "places": range(2, 20)}
    write_miniimagenet(root, monkeypatch, classes, **files)
    own = ImageEpisodes(episodes_of("miniimagenet", ways=5, shots=1), 0)
    made = own.batch("train", range(2))
    assert made.query_inputs.shape == (2, 75, 3, 84, 84)
    tested = {each for n in range(50) for each in own.recipe("test", n).classes}
    assert {own.images.classes[each] for each in tested} == set(classes["test"])
    # The split is a published one: all replicates have it.
    other = ImageEpisodes(own.settings, 1)
    assert all(own.classes[p].tolist() == other.classes[p].tolist() for p in PARTS)
    assert own.recipe("test", 0) != other.recipe("test", 0)
    with pytest.raises(
        ConfigError, match="5 shots and 15 queries need 20 images of ev"
    ):
        ImageEpisodes(episodes_of("miniimagenet", ways=5, shots=5), 0)


def test_omniglot(root, monkeypatch):
    write_omniglot(root, monkeypatch, each=18, drawings=20)
    monkeypatch.setattr(class_splits, "MAML_COUNTS", {"train": 20, "val": 6})
    settings = as_the_authors(episodes_of("omniglot", ways=5, shots=5))
    own, other = (ImageEpisodes(settings, replicate) for replicate in (0, 1))
    assert [len(own.classes[part]) for part in PARTS] == [20, 6, 10]
    assert own.classes["test"].tolist() != other.classes["test"].tolist()
    assert own.batch("train", [0]).query_inputs.shape == (1, 75, 1, 28, 28)
    assert own.batch("test", [0]).query_inputs.shape == (1, 25, 1, 28, 28)
    assert len({own.recipe("test", number).turns for number in range(20)}) > 1

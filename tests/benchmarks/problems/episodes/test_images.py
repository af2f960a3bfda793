"""Episodes of images: made again bit for bit, disjoint, refused before any work."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.data.few_shot.contract import PARTS
from benchmarks.data.registry import find_any
from benchmarks.problems.episodes.images import ImageEpisodes, ImageSettings
from benchmarks.problems.episodes.protocols import (
    PROTOCOLS,
    as_the_authors,
    episodes_of,
)
from benchmarks.runs.codec import decode, encode
from benchmarks.runs.paths import data_root
from metricopt.errors import ConfigError, DataError

SETTINGS = PROTOCOLS["drawn-classes"]


def source(replicate=0, **changes):
    return ImageEpisodes(replace(SETTINGS, **changes), replicate)


def tensors(episodes):
    return [*vars(episodes).values()]


def real(dataset):
    if find_any(dataset).status()[0].state == "missing":
        pytest.skip(f"{dataset} is not in {data_root()}")


def nearest_mean_accuracy(episodes):
    """Accuracy of the class whose mean of raw pixels is nearest, for every episode."""
    ways = int(episodes.support_targets.max()) + 1
    means = episodes.support_inputs.flatten(2).unflatten(1, (ways, -1)).mean(2)
    chosen = torch.cdist(episodes.query_inputs.flatten(2), means).argmin(-1)
    return (chosen == episodes.query_targets).double().mean(1)


def test_an_episode_has_the_shapes_and_labels_it_says():
    made = source(ways=3, shots=2, queries=4).batch("train", range(5))
    assert len(made) == 5
    assert made.support_inputs.shape == (5, 6, 3, 28, 28)
    assert made.query_inputs.shape == (5, 12, 3, 28, 28)
    assert made.support_targets.tolist() == [[0, 0, 1, 1, 2, 2]] * 5
    assert made.query_targets.tolist() == [[0] * 4 + [1] * 4 + [2] * 4] * 5
    assert made.support_inputs.dtype == torch.float32
    assert 0 <= made.support_inputs.min() < made.support_inputs.max() <= 1
    assert made.to("cpu").query_targets.dtype == torch.int64


def test_an_episode_is_the_images_of_its_recipe():
    own = source(shots=2, queries=3, rotated=PARTS)
    made, recipe = own.batch("val", [4]), own.recipe("val", 4)
    for label, (places, turn) in enumerate(
        zip(recipe.query, recipe.turns, strict=True)
    ):
        assert own.images.targets[[*places]].tolist() == [recipe.classes[label]] * 3
        for number, place in enumerate(places):
            image = (
                own.images.read(place)
                .resize((28, 28), Image.Resampling.BICUBIC)
                .rotate(90 * turn)
            )
            expected = torch.from_numpy(np.array(image)).long()
            found = made.query_inputs[0, 3 * label + number].movedim(0, -1)
            assert torch.equal((found * 255).round().long(), expected)


def test_the_same_number_makes_the_same_episode_whatever_happened_before():
    first = source().batch("test", [7])
    torch.manual_seed(123)
    own = source()
    own.batch("train", range(3))
    again = own.batch("test", [5, 7])
    for one, both in zip(tensors(first), tensors(again), strict=True):
        assert torch.equal(one[0], both[1])


def test_another_process_makes_the_same_recipes():
    """These are from a process that ended long ago, with hashes of texts of its own."""
    own = source(rotated=PARTS)
    recipe = own.recipe("train", 1)
    assert recipe.classes == (30, 20, 8, 18, 1)
    assert recipe.turns == (3, 3, 1, 3, 3)
    assert recipe.support == ((606,), (405,), (174,), (375,), (21,))
    facts = repr([own.recipe(part, number) for part in PARTS for number in range(50)])
    assert hashlib.sha256(facts.encode()).hexdigest()[:16] == "e5b180bea9b8710d"


def test_other_numbers_parts_and_replicates_make_other_episodes():
    own = source()
    recipes = {own.recipe(part, number) for part in PARTS for number in range(20)}
    recipes |= {source(1).recipe("train", number) for number in range(20)}
    assert len(recipes) == 80


def test_support_and_query_share_no_image_and_classes_are_distinct():
    own = source(shots=5, queries=15)
    for part in PARTS:
        for number in range(30):
            recipe = own.recipe(part, number)
            images = [p for each in (*recipe.support, *recipe.query) for p in each]
            assert len(set(images)) == len(images) == 5 * 20
            assert len(set(recipe.classes)) == 5
            assert set(recipe.classes) <= set(own.classes[part].tolist())


def test_all_classes_and_images_are_drawn():
    own = source()
    recipes = [own.recipe("val", number) for number in range(200)]
    assert {each for r in recipes for each in r.classes} == set(
        own.classes["val"].tolist()
    )
    images = {p for r in recipes for each in (*r.support, *r.query) for p in each}
    assert len(images) == 6 * 20


def test_only_rotated_parts_are_turned_and_the_images_stay():
    plain, turned = source(), source(rotated=("train",))
    one, other = (own.recipe("train", 2) for own in (plain, turned))
    assert one.turns == (0,) * 5
    assert (one.support, one.query) == (other.support, other.query)
    turns = [turned.recipe("train", number).turns for number in range(20)]
    assert {turn for each in turns for turn in each} == {0, 1, 2, 3}
    assert turned.recipe("test", 2).turns == (0,) * 5


def test_the_authors_test_with_as_many_queries_as_shots():
    settings = as_the_authors(replace(SETTINGS, shots=2))
    theirs, ours = ImageEpisodes(settings, 0), source(shots=2)
    assert theirs.batch("test", [0]).query_targets.shape == (1, 5 * 2)
    assert theirs.batch("train", [0]).query_targets.shape == (1, 5 * 5)
    # The support is the same, so both settings can be compared episode by episode.
    assert theirs.recipe("test", 0).support == ours.recipe("test", 0).support


def test_tests_are_600_by_default_in_batches():
    own = source()
    batches = list(own.tests(250))
    assert [len(each) for each in batches] == [250, 250, 100]
    last = own.batch("test", [599])
    assert torch.equal(batches[-1].query_inputs[-1], last.query_inputs[0])
    assert len(list(source(test_episodes=3).tests())) == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ways": 0}, "an episode needs ways >= 1, got ways=0"),
        ({"shots": -1}, "an episode needs shots >= 1, got shots=-1"),
        ({"queries": 2.5}, "queries must be a whole number, got 2.5"),
        ({"shots": True}, "shots must be a whole number, got True"),
        ({"test_queries": 0}, "needs test_queries >= 1, got test_queries=0"),
        ({"test_episodes": 0}, "needs test_episodes >= 1, got test_episodes=0"),
        ({"rotated": ("eval",)}, "rotated must name parts of train, val, test, got 'e"),
        ({"dataset": "mnist"}, "unknown few-shot data set 'mnist'; known: drawn-"),
        ({"split": "half"}, "unknown split of classes 'half'; known: given, held"),
        (
            {"ways": 7},
            "7-way episodes need 7 classes, drawn-classes has 6 in part val; use fewer",
        ),
        (
            {"shots": 6, "queries": 15},
            "6 shots and 15 queries need 21 images of every class, drawn-classes has "
            r"20 classes with fewer \(.* with 20, .*\) in part train",
        ),
        (
            {"test_queries": 20},
            "1 shots and 20 queries need 21 images .* 10 classes .* in part test",
        ),
    ],
)
def test_wrong_settings_are_refused_before_an_image_is_read(changes, said, monkeypatch):
    def read(*_):
        raise AssertionError("an image was read")

    monkeypatch.setattr("benchmarks.problems.episodes.images.pixels", read)
    with pytest.raises(ConfigError, match=said):
        source(**changes)


@pytest.mark.parametrize(
    ("part", "numbers", "said"),
    [
        ("observe", [0], "expected a part of train, val, test, got 'observe'"),
        ("test", [], r"at least one episode, numbered from 0 on, got \[\]"),
        ("test", [3, -1], r"at least one episode, numbered from 0 on, got \[3, -1\]"),
    ],
)
def test_wrong_numbers_are_refused(part, numbers, said):
    with pytest.raises(ConfigError, match=said):
        source().batch(part, numbers)


def test_missing_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path))
    for name in set(PROTOCOLS) - {"drawn-classes"}:
        with pytest.raises(DataError, match=f"{name} needs .* in {tmp_path}"):
            ImageEpisodes(PROTOCOLS[name], 0)


def test_protocols_are_by_name():
    settings = episodes_of("omniglot", ways=20, shots=5)
    assert (settings.ways, settings.shots, settings.queries) == (20, 5, 15)
    assert (settings.split, settings.rotated) == ("maml-omniglot", PARTS)
    assert decode(ImageSettings, encode(settings)) == settings
    with pytest.raises(ConfigError, match="unknown few-shot data set 'mnist'"):
        episodes_of("mnist", ways=5, shots=1)


def test_real_characters():
    real("omniglot-small")
    own = ImageEpisodes(episodes_of("omniglot-small", ways=20, shots=1), 0)
    assert [len(own.classes[part]) for part in PARTS] == [154, 38, 50]
    made = own.batch("test", range(20))
    assert made.query_inputs.shape == (20, 300, 1, 28, 28)
    # Strokes are light on a dark ground.
    assert 0.03 < made.query_inputs.mean() < 0.2
    assert (made.query_inputs.min(), made.query_inputs.max()) == (0, 1)
    assert nearest_mean_accuracy(made).mean() > 4 / 20
    assert own.data["variant"] == "omniglot-small"


def test_real_photographs():
    real("tinyimagenet-fewshot100")
    own = ImageEpisodes(episodes_of("tinyimagenet-fewshot100", ways=5, shots=5), 0)
    assert [len(own.classes[part]) for part in PARTS] == [64, 16, 20]
    made = own.batch("test", range(40))
    assert made.query_inputs.shape == (40, 75, 3, 64, 64)
    assert nearest_mean_accuracy(made).mean() > 0.27

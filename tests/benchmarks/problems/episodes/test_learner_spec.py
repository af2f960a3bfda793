"""A meta-trained learner: its identity, its training, and what is refused before."""

from dataclasses import replace

import pytest
import torch

from benchmarks.execution.networks import networks_of, prepare, train_all
from benchmarks.problems.episodes.learner_spec import LearnerSpec
from benchmarks.problems.episodes.tiers import images
from benchmarks.problems.pretrained import weights
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.execution.killed_training import undisturbed_and_resumed
from tests.benchmarks.problems.episodes.learning_cases import (
    DRAWN,
    MAPPED,
    WAVES,
    learner_run,
)


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """An empty cache and an empty folder of released learners."""
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "RELEASED", tmp_path / "weights")


def learned_by(name, learning=DRAWN, **settings):
    return replace(learning, learner=Unit(name, settings))


def test_how_a_learner_is_tested_is_no_part_of_it():
    own = LearnerSpec(DRAWN.trained(), 0)
    tests = replace(DRAWN.episodes, test_episodes=50, test_queries=1)
    assert LearnerSpec(replace(DRAWN, episodes=tests).trained(), 0).digest == own.digest
    for changes in (
        {"learner": Unit("meta-sgd", {})},
        {"network": replace(DRAWN.network, channels=5)},
        {"training": replace(DRAWN.training, rate=0.1)},
        {"episodes": replace(DRAWN.episodes, queries=3)},
    ):
        other = LearnerSpec(replace(DRAWN, **changes).trained(), 0)
        assert other.digest != own.digest
    assert LearnerSpec(DRAWN.trained(), 1).name != own.name


def test_all_learners_of_a_replicate_start_from_the_same_network():
    names = ("maml", "meta-sgd", "block-diagonal", "meta-curvature", "mirror-descent")
    starts = {
        name: LearnerSpec(learned_by(name), 0).fresh().network[0].weight
        for name in names
    }
    assert all(torch.equal(starts["maml"], start) for start in starts.values())
    other = LearnerSpec(DRAWN, 1).fresh().network[0].weight
    assert not torch.equal(other, starts["maml"])


def test_a_learner_is_trained_once_released_and_found():
    spec = LearnerSpec(WAVES.trained(), 0)
    before = spec.fresh()
    assert not spec.is_ready and spec.forecast().operations > 0
    spec.make(quiet=True)
    assert spec.is_made and not spec.checkpoints.exists()
    told = spec.release()
    assert told["iterations"] == "3" and told["learner"] == "sine-3shot-mlp-maml-r0"
    found = spec.find()
    facts = found.facts
    assert facts["meta_parameters"] == 1_761 and facts["skipped"] == 0
    # The score is that of the weights as they are kept, in half precision.
    source = WAVES.source(0)
    assert spec.score(found.network, source) == pytest.approx(facts["score"], abs=1e-6)
    assert facts["score"] != pytest.approx(spec.score(before, source), abs=1e-6)
    assert found.digest == weights.weights_digest(
        weights.half_weights(found.network.state_dict())
    )


def test_learners_that_runs_need_are_trained_before_them():
    other = learned_by("meta-sgd", WAVES)
    runs = [learner_run(WAVES), learner_run(other, row="meta-sgd")]
    prepare(runs)
    assert all(learner.is_made for learner in networks_of(runs))
    ended = []
    train_all(networks_of(runs), ended=ended.append)
    assert [learner.learning for learner in ended] == [WAVES.trained(), other.trained()]


KILLED = """
from functools import partial
from benchmarks.execution.networks import prepare
from benchmarks.problems.episodes import meta_settings
from tests.benchmarks.problems.episodes.learning_cases import MAPPED, learner_run

meta_settings.MetaTraining = partial(meta_settings.MetaTraining, save_every=0)
prepare([learner_run(MAPPED)])
"""


def test_a_killed_meta_training_goes_on_and_ends_with_the_same_bits(
    tmp_path, monkeypatch
):
    spec = LearnerSpec(MAPPED.trained(), 0)
    expected, found = undisturbed_and_resumed(spec, KILLED, tmp_path, monkeypatch)
    assert found.facts["weights"] == expected.facts["weights"]
    assert found.facts["losses"] == expected.facts["losses"]


def test_what_does_not_go_together_is_refused_without_data():
    for learning, message in (
        (learned_by("no-such-learner"), "unknown learner 'no-such-learner'"),
        (learned_by("maml", mask=True), "MAML has no setting mask"),
        (learned_by("maml", rate=0.0), "rate"),
        (
            replace(DRAWN, network=replace(DRAWN.network, shrink=2)),
            "need images of 16 pixels or more, got 14",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            networks_of([learner_run(learning)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shots": 11, "queries": 10}, "11 shots and 10 queries need 21 images of ev"),
        ({"ways": 7}, "7"),
    ],
)
def test_data_that_cannot_give_the_episodes_are_refused_before_training(
    changes, message, monkeypatch
):
    (problem,) = images("smoke")
    episodes = replace(problem.learning.episodes, **changes)
    learning = replace(problem.learning, episodes=episodes)
    problem = replace(problem, learning=learning)
    assert problem.here(None) == problem  # a plan needs no data
    with pytest.raises(ConfigError, match=message):
        problem.here(False)


def test_folders_that_are_not_those_of_the_published_lists_are_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path))
    folder = tmp_path / "miniimagenet"
    folder.mkdir()
    for part in ("train", "val", "test"):
        (folder / f"{part}.csv").write_text("filename,label\n")
    (tmp_path / "imagenet" / "train").mkdir(parents=True)
    problem, *_ = images("paper")
    with pytest.raises(DataError, match="csv"):
        problem.here(False)


@pytest.mark.parametrize("tier", ["smoke", "local", "paper"])
def test_the_wider_network_has_as_many_weights_as_block_iaf(tier):
    for problem in images(tier):
        mirror = problem.learned_by("mirror-descent", {}).learning
        wide = problem.widened().learned_by("maml", {}).learning
        sizes = [LearnerSpec(each, 0).fresh().size for each in (mirror, wide)]
        assert sizes[1] == pytest.approx(sizes[0], rel=0.05)

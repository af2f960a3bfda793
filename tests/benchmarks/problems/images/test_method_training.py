"""Networks that a method trains: the same start, whole courses, clear refusals."""

from dataclasses import replace

import pytest
import torch

from baselines.network_methods.contract import NETWORK_METHODS
from benchmarks.problems.images.method_networks import (
    METRIC_FREE,
    SIZES,
    WHOLE,
    unit_of,
)
from benchmarks.problems.pretrained.kept_training import DIVERGED
from benchmarks.runs.codec import changed
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, DivergedError
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline


def theta_of(row, experiment="ala-table1"):
    return smoke_pipeline(experiment, row).theta_spec


def test_all_methods_begin_with_the_same_weights():
    rows = ("ce", "self-paced", "ala", "ala-noise", "l2t-dlf")
    starts = [theta_of(row).fresh().state_dict() for row in rows]
    for other in starts[1:]:
        for name, value in starts[0].items():
            assert torch.equal(value, other[name])
    assert len({theta_of(row).digest for row in rows}) == len(rows)


def test_tables_share_networks():
    assert theta_of("ce").digest == theta_of("ce", "reloss-cifar").digest
    assert "reloss-mcr" in theta_of("reloss", "reloss-cifar").name


def test_the_course_is_that_of_the_last_training():
    facts = theta_of("reloss", "reloss-cifar").trained_here().facts
    notes = facts["notes"]
    assert len(notes["course_mcr"]) == len(notes["course_observe_loss"]) == 3
    # It trains twice.
    alone = theta_of("ce").trained_here().facts
    assert facts["gradient_steps"] == 2 * alone["gradient_steps"]
    assert 0 < notes["train_error"] < 0.9
    assert alone["queries"] == {}
    assert sum(facts["queries"].values()) > notes["group_queries"] > 0


def test_a_loss_alone_begins_like_cross_entropy_and_leaves_its_course():
    margin, plain = (theta_of(row, "learned-losses") for row in ("large-margin", "ce"))
    assert margin.seeds.names == plain.seeds.names
    facts, alone = margin.trained_here().facts, plain.trained_here().facts
    assert facts["gradient_steps"] == alone["gradient_steps"]
    assert facts["core_seconds"] > 0 and facts["queries"] == {}
    course = facts["notes"]["course_mcr"]
    assert len(course) == 3 and course[-1] == pytest.approx(facts["observe_mcr"], 0.1)
    assert course[-1] < course[0] < 1


def test_losses_of_their_own_tier_know_their_settings():
    margin = unit_of("large-margin", WHOLE["local"])
    assert margin.name == "surrogate-loss"
    method = changed(NETWORK_METHODS.get("surrogate-loss")(), margin.settings)
    assert method.loss_settings["annealing"]["steps"] == 12_000
    assert unit_of("aucpr", WHOLE["local"]).settings == {"loss": "aucpr"}


def test_a_method_that_diverges_leaves_its_reason(monkeypatch):
    def diverge(*arguments, **more):
        raise DivergedError("the loss became nan in epoch 1 of 3")

    method = NETWORK_METHODS.get("self-paced")
    monkeypatch.setattr(method, "train", diverge)
    spec = theta_of("self-paced")
    made = spec.train()
    assert made.tensors == {}
    assert made.facts == {DIVERGED: "the loss became nan in epoch 1 of 3"}


def test_a_moved_threshold_is_refused(monkeypatch):
    method = NETWORK_METHODS.get("self-paced")
    train = method.train

    def moved(*arguments, **more):
        return replace(train(*arguments, **more), threshold=0.5)

    monkeypatch.setattr(method, "train", moved)
    with pytest.raises(ConfigError, match="self-paced moves the threshold"):
        theta_of("self-paced").train()


@pytest.mark.parametrize("tier", SIZES)
def test_methods_have_the_settings_of_their_tier(tier):
    size = SIZES[tier]
    assert unit_of("ce", size) == Unit("surrogate-loss")
    assert unit_of("ala-multi", size).settings["children"] == size.children
    noisy = unit_of("ala-noise", size).settings
    assert noisy == {**size.methods["ala"], "form": "noise"}
    fitting = unit_of("reloss-regression", size).settings["fitting"]
    assert fitting["objective"] == "regression" and fitting["unit_slope"]
    assert "ce" in METRIC_FREE


def test_at_its_whole_size_reloss_has_the_slope_of_cross_entropy():
    for form in ("reloss", "reloss-anchored", "reloss-regression"):
        settings = unit_of(form, WHOLE["local"]).settings
        assert settings["recording_rate"] == WHOLE["local"].pretraining.rate
        method = changed(NETWORK_METHODS.get("reloss")(), settings)
        assert method.fitting.slope_of_base and not method.fitting.unit_slope
        assert (method.fitting.groups, method.recording) == (64, 0.25)

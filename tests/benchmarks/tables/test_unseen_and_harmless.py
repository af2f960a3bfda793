"""What the experiments on unseen metrics and on harm are made of."""

import pytest

from benchmarks.problems.images.settings import ImageSettings
from benchmarks.problems.tabular.pipeline import TabularSettings
from benchmarks.runs.codec import decode
from benchmarks.tables.ours import harmless, harmless_images
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.problems.data_variants import variants_are_full

OURS = "metricopt-outputs"
KINDS = {
    "matthews",
    "kappa",
    "f2",
    "random-cost",
    "calibration-error",
    "log-loss",
    "sure-accuracy",
}


@pytest.fixture(autouse=True)
def variants(monkeypatch):
    variants_are_full(monkeypatch)


def specs_of(name, tier):
    return find_experiment(name).specs(tier, 1, True)


def metrics_of(specs):
    return {spec.column: spec.metric for spec in specs}


def pairs_of(specs):
    return {(spec.block, spec.column) for spec in specs}


def test_two_classes_leave_out_what_is_known_under_another_name():
    two = metrics_of(specs_of("unseen", "local"))
    many = metrics_of(specs_of("unseen-images", "local"))
    assert {unit.name for unit in two.values()} == KINDS
    further = {"two-worst-recalls", "reciprocal-rank"}
    assert {unit.name for unit in many.values()} == KINDS | further
    seeds = [u.settings["seed"] for u in two.values() if u.name == "random-cost"]
    assert seeds == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "experiment", ["unseen", "unseen-images", "harmless", "harmless-images"]
)
@pytest.mark.parametrize("tier", ["local", "smoke"])
def test_every_row_that_searches_has_output_offsets(experiment, tier):
    for spec in specs_of(experiment, tier):
        assert spec.pipeline.settings["adapter"]["offsets"] is True
        if spec.row == OURS:
            assert spec.budget.queries == 15


@pytest.mark.parametrize("experiment", ["unseen-images", "harmless-images"])
def test_image_networks_are_searched_several_times(experiment):
    tests = {spec.row: spec.meta_tests for spec in specs_of(experiment, "local")}
    assert tests["cross-entropy"] == 1
    assert tests[OURS] == tests["cma-es"] == 2


def test_tier_local_leaves_out_rows_and_columns_on_the_small_network():
    local, paper = (specs_of("unseen-images", tier) for tier in ("local", "paper"))
    rows = {}
    for spec in local:
        rows.setdefault((spec.block, spec.column), set()).add(spec.row)
    short = {"cross-entropy", OURS, "cma-es"}
    assert rows["small", "cifar10/matthews"] == short
    assert rows["resnet32", "cifar10/random-cost-4"] == short
    assert rows["resnet32", "cifar10/random-cost-0"] > short
    patient = {column for (_, column), own in rows.items() if f"{OURS}-q50" in own}
    assert len(patient) == 5 and "cifar10/log-loss" in patient
    assert ("small", "cifar10/random-cost-4") not in rows
    every = {(spec.block, spec.row, spec.column) for spec in paper}
    assert len(every) == len(paper) == 2 * 13 * 6


def test_harm_is_looked_for_in_more_than_twenty_situations():
    tabular, images = (
        specs_of(experiment, "local") for experiment in ("harmless", "harmless-images")
    )
    assert len(pairs_of(tabular)) == 36
    assert len(pairs_of(images)) == 9
    assert {harmless.observed_of(s) for s in tabular} == {57, 180, 200, 500, 2_000}
    assert {harmless_images.observed_of(s) for s in images} == {200, 500, 2_000}


def test_sub_samples_are_ten_times_their_observe_split():
    for spec in specs_of("harmless", "local"):
        problem = decode(TabularSettings, spec.pipeline.settings).problem
        _, size = spec.block.split("-")
        assert (problem.max_examples is None) == (size == "whole")
        if problem.max_examples is not None:
            assert problem.max_examples == 10 * int(size)


def test_the_network_does_not_depend_on_the_observe_split():
    decoded = [
        decode(ImageSettings, spec.pipeline.settings)
        for spec in specs_of("harmless-images", "local")
    ]
    assert len({each.observed for each in decoded}) == 3
    assert len({repr((each.problem, each.backbone)) for each in decoded}) == 1

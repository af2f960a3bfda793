"""Table 4: rows, sources, the paper's numbers, and tier paper on a miniature."""

from types import SimpleNamespace

import pytest

from benchmarks.data.folders.imagenet import ImageNet
from benchmarks.execution.runner import networks_of, run_all
from benchmarks.problems.photographs.pipeline import PhotographSettings
from benchmarks.problems.pretrained.pipeline import network_of
from benchmarks.runs.codec import decode
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.data.folders.class_folders import write_folders
from tests.benchmarks.tables.shrunk import shrunk

EXPERIMENT = find_experiment("table4")


def specs(tier):
    return {spec.row: spec for spec in EXPERIMENT.specs(tier, 1, True)}


@pytest.mark.parametrize(
    ("row", "top1", "top5"),
    [
        ("rmsprop", 0.735, 0.915),
        ("powersign", 0.739, 0.919),
        ("metricopt-resnet18", 0.742, 0.923),
        ("metricopt-cifar10", 0.744, 0.922),
        ("metricopt", 0.749, 0.927),
        ("second-run", 0.751, 0.930),
    ],
)
def test_the_numbers_of_the_paper(row, top1, top5):
    layout = EXPERIMENT.layout("paper")
    own = next(each for each in layout.rows if each.name == row)
    found = [layout.paper_value(own, c, layout.blocks[0]) for c in layout.columns]
    assert [value.value for value in found] == [top1, top5]


def test_other_data_are_not_compared_with_the_paper():
    for tier in ("local", "smoke"):
        assert all(c.not_comparable for c in EXPERIMENT.layout(tier).columns)
    caption = EXPERIMENT.layout("local").caption
    assert "No number here is one of ImageNet" in caption
    assert "have seen these images" in caption


def test_the_paper_tier_has_the_sizes_of_the_paper():
    spec = specs("paper")["metricopt"]
    settings = decode(PhotographSettings, spec.pipeline.settings)
    assert (settings.adapter.size, spec.budget.gradient_steps) == (256, 500)
    assert settings.backbone.network == "nasnet-a-mobile"
    assert settings.backbone.training.optimizer == "rmsprop"
    assert spec.metric.name == "mcr"


def test_networks_of_sources_are_made_before_the_runs():
    needed = {network.name for network in networks_of(list(specs("local").values()))}
    assert needed == {
        "imagenette-subset-nasnet-a-small-rmsprop-r0",
        "imagenette-subset-nasnet-a-small-powersign-r0",
        "imagenette-subset-resnet18-slim-sgd-r0",
        "cifar10-nasnet-a-cifar-small-sgd-r0",
    }
    names = {network_of(spec) for spec in specs("local").values()}
    assert len(names) == 2


def test_data_of_sources_are_fetched_before_the_runs(monkeypatch):
    fetched = []

    def find(name):
        return SimpleNamespace(load=lambda: fetched.append(name))

    monkeypatch.setattr("benchmarks.problems.problem.find_any", find)
    EXPERIMENT.specs("local", 1, True)
    assert fetched == []
    EXPERIMENT.specs("local", 1, False)
    assert set(fetched) == {"imagenette-subset", "cifar10"}


MINIATURE = {
    "problem": {"dataset": "imagenet", "side": 32, "observed": 6, "variant": ""},
    "backbone": {
        "classes": 3,
        "training": {
            **{"epochs": 1, "batch_size": 4},
            "precision": "float32",  # bfloat16 is slow where it is emulated
        },
    },
    "batch_size": 4,
}
ROWS = (
    *("rmsprop", "powersign", "metricopt", "metricopt-resnet18", "metricopt-cifar10"),
    "second-run",
)


def small(spec):
    """A run of tier paper with few steps, queries and pixels."""
    also = tuple(unit for unit in spec.also if unit.name != "top-5")
    return shrunk(spec, MINIATURE, queries=48, also=also)


def test_tier_paper_runs_on_a_miniature_of_its_data(tmp_path, monkeypatch):
    """With NASNet-A mobile and its sources, on folders as ImageNet's are."""
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ImageNet, "expected", (18, 6, 3))
    write_folders(tmp_path / "data" / "imagenet", train=6, test=2)
    runs = [small(specs("paper")[row]) for row in ROWS]
    store = RunStore(tmp_path / "store")
    run_all(runs, store, workers=1)
    records = [store.get(spec) for spec in runs]
    assert {record.spec.row: record.message for record in records} == dict.fromkeys(
        ROWS, ""
    )
    assert {record.data["variant"] for record in records} == {"imagenet"}

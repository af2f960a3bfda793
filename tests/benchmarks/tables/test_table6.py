"""Table 6: two base losses, AP by class, the paper's numbers, a miniature of VOC."""

import importlib.util

import pytest

from benchmarks.data.detection.voc import VOC07, VOC0712
from benchmarks.execution.runner import run_all
from benchmarks.networks.detection import detectron2_back_end, resnet50_fpn
from benchmarks.problems.detection.pipeline import DetectionSettings
from benchmarks.problems.pretrained.pipeline import network_of
from benchmarks.runs.codec import decode
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.data.detection.devkit import CLASSES, write_devkit
from tests.benchmarks.tables.shrunk import shrunk

EXPERIMENT = find_experiment("table6")


def test_one_run_fills_all_columns_of_its_problem():
    layout, specs = EXPERIMENT.layout("local"), EXPERIMENT.specs("local", 1, True)
    assert [column.label for column in layout.columns] == [
        *("AP50", "Platelets", "RBC", "WBC", "AP50, area", "AP50, COCO")
    ]
    assert {spec.metric.label for spec in specs} == {"ap50"}
    places = [(spec.block, spec.row) for spec in specs]
    assert len(set(places)) == len(places)
    assert {block for block, _ in places} == {"cross-entropy", "ap"}


@pytest.mark.parametrize(
    ("block", "row", "expected"),
    [
        (0, "untouched", (0.742, 0.804)),
        (1, "untouched", (0.757, 0.814)),
        (0, "metricopt", (0.778, 0.823)),
        (1, "metricopt", (0.783, 0.826)),
        (0, "loss-only", (None, None)),
    ],
)
def test_the_paper_has_a_number_for_either_loss_and_training_set(block, row, expected):
    layout = EXPERIMENT.layout("paper")
    own = next(each for each in layout.rows if each.name == row)
    columns = [c for c in layout.columns if c.metric.label == "ap50"]
    assert [column.label for column in columns] == ["07: AP50", "07+12: AP50"]
    found = [layout.paper_value(own, c, layout.blocks[block]) for c in columns]
    assert tuple(each and each.value for each in found) == expected


def test_every_number_says_back_end_network_and_metric():
    for tier in ("local", "smoke"):
        layout = EXPERIMENT.layout(tier)
        assert all(column.not_comparable for column in layout.columns)
        assert "Back end torchvision" in layout.caption
        assert "11-point" in layout.convention
    caption = EXPERIMENT.layout("local").caption
    assert "bccd-voc-subset" in caption
    assert "No number here is one of PASCAL VOC" in caption


def test_every_loss_and_replicate_has_a_detector_of_its_own():
    specs = EXPERIMENT.specs("local", 5, True)
    names = {(s.block, s.replicate): network_of(s) for s in specs}
    assert len(set(names.values())) == 10
    assert names["ap", 1].startswith("bccd-voc-subset, squeezenet1_1, ap, replicate 1")


def test_the_paper_tier_has_the_sizes_of_the_paper():
    (spec, *_) = EXPERIMENT.specs("paper", 1, True)
    settings = decode(DetectionSettings, spec.pipeline.settings)
    assert settings.adapter.size == 128
    assert settings.backbone.network == "resnet50-fpn"
    assert spec.budget.gradient_steps == 200


SMALL = {
    "problem": {"observed": 0.5},
    "backbone": {
        "base": {"source": "random", "file": None, "sha256": None},
        "training": {
            **{"epochs": 1, "batch_size": 2},
            "precision": "float32",  # bfloat16 is slow where it is emulated
        },
    },
    "batch_size": 2,
    "proposals": 10,
}
MOST_QUERIES = 26


def small(spec):
    """A run of tier paper with few steps, queries and proposals."""
    return shrunk(spec, SMALL, queries=MOST_QUERIES, also=spec.also[:3])


BACK_ENDS = {
    "table6": "torchvision, Faster R-CNN, ResNet-50 with FPN",
    "table6-detectron2": "detectron2, Faster R-CNN R50-C4",
}
HAS_DETECTRON2 = importlib.util.find_spec("detectron2") is not None


@pytest.mark.filterwarnings("ignore" if HAS_DETECTRON2 else "default")
@pytest.mark.parametrize("name", BACK_ENDS)
def test_tier_paper_runs_on_a_miniature_of_its_data(name, tmp_path, monkeypatch):
    """Every row, with the detectors of that tier, on files in VOC's layout."""
    if name == "table6-detectron2" and not HAS_DETECTRON2:
        pytest.skip("detectron2 not installed")
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(resnet50_fpn, "SIDES", (64, 96))
    monkeypatch.setattr(detectron2_back_end, "SIDES", (64, 96))
    for source, expected in ((VOC07, (8, 3)), (VOC0712, (12, 3))):
        monkeypatch.setattr(source, "expected", expected)
        monkeypatch.setattr(source, "classes", CLASSES)
    devkit = write_devkit(
        tmp_path / "data" / "voc" / "VOCdevkit", train=8, test=3, difficult=0
    )
    lists = ("trainval", "val")
    write_devkit(devkit, train=4, test=1, year="VOC2012", lists=lists, difficult=0)
    every = find_experiment(name).specs("paper", 1, True)
    specs = [small(spec) for spec in every if spec.block == "ap"]
    chosen = [s for s in specs if s.column == "voc07" or s.row == "untouched"]
    store = RunStore(tmp_path / "store")
    run_all(chosen, store, workers=1)
    records = [store.get(spec) for spec in chosen]
    assert {(r.spec.row, r.spec.column): r.message for r in records} == {
        (spec.row, spec.column): "" for spec in chosen
    }
    assert {r.data["variant"] for r in records} == {"voc07", "voc07+12"}
    said = {r.data["back end"] for r in records}
    assert said == {BACK_ENDS[name]}
    pictured = {r.spec.row for r in records if "scenes" in r.notes}
    assert pictured == {"metricopt", "metricopt-outputs"}

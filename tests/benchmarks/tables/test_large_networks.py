"""Tables 4 to 6: rows, networks, the paper's numbers, tier paper on miniatures."""

import importlib.util
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from benchmarks.data.detection.voc import VOC07
from benchmarks.data.folders.imagenet import ImageNet
from benchmarks.data.listed.sop import ARCHIVE, UNPACKED, StanfordOnlineProducts
from benchmarks.execution.networks import networks_of
from benchmarks.execution.runner import run_all
from benchmarks.networks.detection import detectron2_back_end, resnet50_fpn
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.pretrained.pipeline import network_of
from benchmarks.rows.contract import ROWS
from benchmarks.runs.codec import merged
from benchmarks.runs.spec import Spending
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.data.detection.devkit import CLASSES, write_devkit
from tests.benchmarks.data.folders.class_folders import write_folders
from tests.benchmarks.data.listed.miniature import write_miniature, zipped

STEPS, TASKS = 10, 3
TABLES = ("table4", "table5", "table6")
BRIEF = {"epochs": 1, "precision": "float32"}  # bfloat16 is slow where it is emulated
RANDOM = {"source": "random", "file": None, "sha256": None}
PICTURED = {"metricopt", "metricopt-outputs"}


def layout_of(name, tier="paper"):
    return find_experiment(name).layout(tier)


def specs_of(name, tier, replicates=1):
    return find_experiment(name).specs(tier, replicates, True)


@pytest.mark.parametrize(
    ("name", "block", "row", "expected"),
    [
        ("table4", 0, "rmsprop", (0.735, 0.915)),
        ("table4", 0, "powersign", (0.739, 0.919)),
        ("table4", 0, "metricopt-resnet18", (0.742, 0.923)),
        ("table4", 0, "metricopt-cifar10", (0.744, 0.922)),
        ("table4", 0, "metricopt", (0.749, 0.927)),
        ("table4", 0, "second-run", (0.751, 0.930)),
        ("table5", 0, "untouched", (0.764,)),
        ("table5", 1, "untouched", (0.786,)),
        ("table5", 0, "metricopt", (0.796,)),
        ("table5", 1, "metricopt", (0.804,)),
        ("table5", 0, "loss-only", (None,)),
        ("table6", 0, "untouched", (0.742, 0.804)),
        ("table6", 1, "untouched", (0.757, 0.814)),
        ("table6", 0, "metricopt", (0.778, 0.823)),
        ("table6", 1, "metricopt", (0.783, 0.826)),
        ("table6", 0, "loss-only", (None, None)),
    ],
)
def test_the_numbers_of_the_paper(name, block, row, expected):
    layout = layout_of(name)
    own = next(each for each in layout.rows if each.name == row)
    shown = {"top-1", "top-5", "recall@1", "ap50"}
    columns = [c for c in layout.columns if c.metric.label in shown]
    found = [layout.paper_value(own, c, layout.blocks[block]) for c in columns]
    assert tuple(each and each.value for each in found) == expected


@pytest.mark.parametrize(
    ("name", "tier", "labels"),
    [
        ("table4", "paper", ["top-1", "top-5"]),
        (*("table5", "paper"), ["R@1", "R@10", "R@100", "R@1000", "mean R@k", "mAP@R"]),
        (
            *("table6", "local"),
            ["AP50", "Platelets", "RBC", "WBC", "AP50, area", "AP50, COCO"],
        ),
    ],
)
def test_one_run_fills_all_columns_of_its_problem(name, tier, labels):
    layout, specs = layout_of(name, tier), specs_of(name, tier)
    assert [column.label for column in layout.columns] == labels
    (metric,) = {spec.metric.label for spec in specs}
    assert metric in ("mcr", "mean-recall", "ap50")
    places = [(spec.block, spec.row) for spec in specs]
    assert len(set(places)) == len(places)
    assert {block for block, _ in places} == {block.name for block in layout.blocks}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("table4", ("one of ImageNet", "have seen these images")),
        ("table5", ("one of Stanford Online Products, or of Cars", "cars196-sop-")),
        ("table6", ("one of PASCAL VOC", "bccd-voc-subset", "Back end torchvision")),
    ],
)
def test_other_data_are_not_compared_with_the_paper(name, said):
    for tier in ("local", "smoke"):
        assert all(column.not_comparable for column in layout_of(name, tier).columns)
    layout = layout_of(name, "local")
    assert all(
        text in layout.caption for text in (*said, f"No number here is {said[0]}")
    )


def test_every_number_of_detection_says_back_end_and_metric():
    for tier in ("local", "smoke"):
        layout = layout_of("table6", tier)
        assert "Back end torchvision" in layout.caption
        assert "11-point" in layout.convention
    labels = [c.label for c in layout_of("table6").columns]
    assert {"07: AP50", "07+12: AP50"} < set(labels)


@pytest.mark.parametrize(
    ("name", "size", "steps", "network"),
    [
        ("table4", 256, 500, "nasnet-a-mobile"),
        ("table5", 128, 200, "resnet50"),
        ("table6", 128, 200, "resnet50-fpn"),
    ],
)
def test_the_paper_tier_has_the_sizes_of_the_paper(name, size, steps, network):
    spec = next(spec for spec in specs_of(name, "paper") if spec.row == "metricopt")
    settings = make_pipeline(spec.pipeline, 0).settings
    assert (settings.adapter.size, spec.budget.gradient_steps) == (size, steps)
    assert settings.backbone.network == network
    if name == "table4":
        assert settings.backbone.training.optimizer == "rmsprop"
    if name == "table5":
        assert (settings.batch_size, settings.backbone.size) == (128, 512)


@pytest.mark.parametrize(
    ("name", "replicates", "key", "begins"),
    [
        ("table5", 3, ("recall", 1), "cars196-sop-format, squeezenet1_1, recall"),
        ("table6", 5, ("ap", 1), "bccd-voc-subset, squeezenet1_1, ap"),
    ],
)
def test_every_loss_and_replicate_has_a_network_of_its_own(
    name, replicates, key, begins
):
    specs = specs_of(name, "local", replicates)
    names = {(s.block, s.replicate): network_of(s) for s in specs}
    assert len(set(names.values())) == 2 * replicates
    assert names[key].startswith(f"{begins}, replicate 1 (")


def test_the_first_replicate_of_two_methods_is_pictured():
    """Ours may return the network as it was, and the paper's never does."""
    found = [spec for spec in specs_of("table5", "local", 3) if spec.pictured]
    assert {(s.block, s.row, s.replicate) for s in found} == {
        (loss, row, 0) for loss in ("fastap", "recall") for row in PICTURED
    }


def test_networks_of_sources_are_made_before_the_runs():
    specs = specs_of("table4", "local")
    names = {network.name for network in networks_of(specs)}
    (learned,) = (name for name in names if name.startswith("optimizer-"))
    assert "nasnet-a-small-rmsprop-r0-metricopt-mlp-by-value-function-mcr" in learned
    assert names - {learned} == {
        "imagenette-subset-nasnet-a-small-rmsprop-r0",
        "imagenette-subset-nasnet-a-small-powersign-r0",
        "imagenette-subset-resnet18-slim-sgd-r0",
        "cifar10-nasnet-a-cifar-small-sgd-r0",
    }
    assert len({network_of(spec) for spec in specs}) == 2


def test_data_of_sources_are_fetched_before_the_runs(monkeypatch):
    fetched = []

    def find(name):
        return SimpleNamespace(load=lambda: fetched.append(name))

    monkeypatch.setattr("benchmarks.problems.problem.find_any", find)
    find_experiment("table4").specs("local", 1, True)
    assert fetched == []
    find_experiment("table4").specs("local", 1, False)
    assert set(fetched) == {"imagenette-subset", "cifar10"}


class Miniature(NamedTuple):
    """Tier paper with few steps, queries and examples.

    Attributes:
        settings: changes to the settings of pipelines.
        queries: the most that a run makes.
        also: whether a run is judged by a further metric, by its place and name.
        variants: names of the data that records tell.
    """

    settings: dict
    queries: int
    also: object
    variants: set

    def of(self, spec):
        """The run made small: short settings of its row, a recipe of few tasks."""
        arm = spec.arm
        if arm.kind == "method" and spec.row in ROWS:
            arm = replace(arm, settings=merged(ROWS.get(spec.row).short, arm.settings))
        if "recipe" in arm.settings:
            rollout = {"steps": STEPS, "observations": 2}
            recipe = arm.settings["recipe"] | {"tasks": TASKS, "rollout": rollout}
            arm = replace(arm, settings=arm.settings | {"recipe": recipe})
        if arm.source is not None:
            arm = replace(arm, source=self._unit(arm.source))
        also = (u for place, u in enumerate(spec.also) if self.also(place, u.name))
        return replace(
            spec,
            pipeline=self._unit(spec.pipeline),
            arm=arm,
            budget=Spending(min(spec.budget.queries, self.queries), STEPS),
            also=tuple(also),
            meta_tests=1,
        )

    def _unit(self, unit):
        return replace(unit, settings=merged(unit.settings, self.settings))


PHOTOGRAPHS = Miniature(
    {
        "problem": {"dataset": "imagenet", "side": 32, "observed": 6, "variant": ""},
        "backbone": {"classes": 3, "training": BRIEF | {"batch_size": 4}},
        "batch_size": 4,
    },
    queries=48,
    also=lambda place, name: name != "top-5",
    variants={"imagenet"},
)
PRODUCTS = Miniature(
    {
        "problem": {"side": 32, "observed": 0.5},
        "backbone": {
            "base": RANDOM,
            "training": BRIEF | {"batch_size": 8, "per_class": 2},
        },
        "batch_size": 8,
        "per_class": 2,
    },
    queries=26,
    also=lambda place, name: "00" not in name,
    variants={"sop"},
)
OBJECTS = Miniature(
    {
        "problem": {"observed": 0.5},
        "backbone": {"base": RANDOM, "training": BRIEF | {"batch_size": 2}},
        "batch_size": 2,
        "proposals": 10,
    },
    queries=26,
    also=lambda place, name: place < 3,
    variants={"voc07"},
)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder of all data, with a cache beside it."""
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


def records_of(miniature, specs, tmp_path):
    """Run some specs, none of which may fail, and return their records."""
    runs = [miniature.of(spec) for spec in specs]
    store = RunStore(tmp_path / "store")
    run_all(runs, store, workers=1)
    records = [store.get(spec) for spec in runs]
    assert runs and {record.message for record in records} == {""}
    assert {record.data["variant"] for record in records} == miniature.variants
    return records


def test_table_4_runs_on_a_miniature_of_its_data(data, tmp_path, monkeypatch):
    """With NASNet-A mobile and its sources, on folders as ImageNet's are."""
    monkeypatch.setattr(ImageNet, "expected", (18, 6, 3))
    write_folders(data / "imagenet", train=6, test=2)
    rows = {
        *("rmsprop", "powersign", "metricopt", "metricopt-resnet18"),
        *("metricopt-cifar10", "second-run"),
    }
    specs = [spec for spec in specs_of("table4", "paper") if spec.row in rows]
    assert {r.spec.row for r in records_of(PHOTOGRAPHS, specs, tmp_path)} == rows


def test_table_5_runs_on_a_miniature_of_its_data(data, tmp_path, monkeypatch):
    """Every row, with ResNet-50, on files in the official layout."""
    monkeypatch.setattr(StanfordOnlineProducts, "expected", (120, 160, 24, 34))
    folder = write_miniature(tmp_path / "mini", train=(24, 5), test=(10, 4))
    (data / "sop").mkdir(parents=True)
    zipped(folder, data / "sop" / ARCHIVE, UNPACKED)
    specs = [s for s in specs_of("table5", "paper") if s.block == "fastap"]
    records = records_of(PRODUCTS, specs, tmp_path)
    assert {r.spec.row for r in records if "picture_jpeg" in r.notes} == PICTURED


BACK_ENDS = {
    "table6": "torchvision, Faster R-CNN, ResNet-50 with FPN",
    "table6-detectron2": "detectron2, Faster R-CNN R50-C4",
}
HAS_DETECTRON2 = importlib.util.find_spec("detectron2") is not None


@pytest.mark.filterwarnings("ignore" if HAS_DETECTRON2 else "default")
@pytest.mark.parametrize("name", BACK_ENDS)
def test_table_6_runs_on_a_miniature_of_its_data(name, data, tmp_path, monkeypatch):
    """Every row, with the detectors of that tier, on files in VOC's layout."""
    if name == "table6-detectron2" and not HAS_DETECTRON2:
        pytest.skip("detectron2 not installed")
    monkeypatch.setattr(resnet50_fpn, "SIDES", (64, 96))
    monkeypatch.setattr(detectron2_back_end, "SIDES", (64, 96))
    monkeypatch.setattr(VOC07, "expected", (8, 3))
    monkeypatch.setattr(VOC07, "classes", CLASSES)
    write_devkit(data / "voc" / "VOCdevkit", train=8, test=3, difficult=0)
    chosen = ("ap", "voc07")
    specs = [s for s in specs_of(name, "paper") if (s.block, s.column) == chosen]
    records = records_of(OBJECTS, specs, tmp_path)
    assert {record.data["back end"] for record in records} == {BACK_ENDS[name]}
    assert {r.spec.row for r in records if "scenes" in r.notes} == PICTURED

"""Table 5: two base losses, one value function for all columns, the paper's numbers."""

import pytest

from benchmarks.data.listed.sop import ARCHIVE, UNPACKED, StanfordOnlineProducts
from benchmarks.execution.runner import run_all
from benchmarks.problems.pretrained.pipeline import network_of
from benchmarks.problems.retrieval.pipeline import RetrievalSettings
from benchmarks.runs.codec import decode
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.data.listed.miniature import write_miniature, zipped
from tests.benchmarks.tables.shrunk import shrunk

EXPERIMENT = find_experiment("table5")


def test_one_run_fills_all_columns():
    layout, specs = (
        EXPERIMENT.layout("paper"),
        EXPERIMENT.specs("paper", 1, True),
    )
    assert [column.label for column in layout.columns] == [
        *("R@1", "R@10", "R@100", "R@1000", "mean R@k", "mAP@R")
    ]
    assert {spec.metric.name for spec in specs} == {"mean-recall"}
    places = [(spec.block, spec.row) for spec in specs]
    assert len(set(places)) == len(places)
    assert {block for block, _ in places} == {"fastap", "recall"}


@pytest.mark.parametrize(
    ("block", "row", "expected"),
    [
        (0, "untouched", 0.764),
        (1, "untouched", 0.786),
        (0, "metricopt", 0.796),
        (1, "metricopt", 0.804),
        (0, "loss-only", None),
    ],
)
def test_the_paper_has_a_number_for_either_loss(block, row, expected):
    layout = EXPERIMENT.layout("paper")
    own = next(each for each in layout.rows if each.name == row)
    found = layout.paper_value(own, layout.columns[0], layout.blocks[block])
    assert (None if found is None else found.value) == expected


def test_other_data_are_not_compared_with_the_paper():
    for tier in ("local", "smoke"):
        layout = EXPERIMENT.layout(tier)
        assert all(column.not_comparable for column in layout.columns)
    caption = EXPERIMENT.layout("local").caption
    assert "cars196-sop-format" in caption
    wanted = "No number here is one of Stanford Online Products, or of Cars196"
    assert wanted in caption


def test_the_first_replicate_of_two_methods_is_pictured():
    """Ours may return the network as it was, and the paper's never does."""
    found = [s for s in EXPERIMENT.specs("local", 3, True) if s.pictured]
    assert {(s.block, s.row, s.replicate) for s in found} == {
        (loss, row, 0)
        for loss in ("fastap", "recall")
        for row in ("metricopt", "metricopt-outputs")
    }


def test_every_loss_and_replicate_has_a_network_of_its_own():
    specs = EXPERIMENT.specs("local", 3, True)
    names = {(s.block, s.replicate): network_of(s) for s in specs}
    assert len(set(names.values())) == 6
    assert names["recall", 1].startswith(
        "cars196-sop-format, squeezenet1_1, recall, replicate 1 ("
    )


def test_the_paper_tier_has_the_sizes_of_the_paper():
    (spec, *_) = EXPERIMENT.specs("paper", 1, True)
    settings = decode(RetrievalSettings, spec.pipeline.settings)
    assert (settings.batch_size, settings.adapter.size) == (128, 128)
    assert (settings.backbone.network, settings.backbone.size) == ("resnet50", 512)
    assert spec.budget.gradient_steps == 200


SMALL = {
    "problem": {"side": 32, "observed": 0.5},
    "backbone": {
        "base": {"source": "random", "file": None, "sha256": None},
        "training": {
            **{"epochs": 1, "batch_size": 8, "per_class": 2},
            "precision": "float32",  # bfloat16 is slow where it is emulated
        },
    },
    "batch_size": 8,
    "per_class": 2,
}
MOST_QUERIES = 26


def small(spec):
    """A run of tier paper with few steps, queries and pixels."""
    also = tuple(unit for unit in spec.also if "00" not in unit.name)
    return shrunk(spec, SMALL, queries=MOST_QUERIES, also=also)


def test_tier_paper_runs_on_a_miniature_of_its_data(tmp_path, monkeypatch):
    """Every row, with ResNet-50, on files in the official layout."""
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(StanfordOnlineProducts, "expected", (120, 160, 24, 34))
    folder = write_miniature(tmp_path / "mini", train=(24, 5), test=(10, 4))
    (tmp_path / "data" / "sop").mkdir(parents=True)
    zipped(folder, tmp_path / "data" / "sop" / ARCHIVE, UNPACKED)
    specs = [
        small(s) for s in EXPERIMENT.specs("paper", 1, True) if s.block == "fastap"
    ]
    store = RunStore(tmp_path / "store")
    run_all(specs, store, workers=1)
    records = [store.get(spec) for spec in specs]
    assert {record.spec.row: record.message for record in records} == {
        spec.row: "" for spec in specs
    }
    assert {record.data["variant"] for record in records} == {"sop"}
    pictured = {r.spec.row for r in records if "picture_jpeg" in r.notes}
    assert pictured == {"metricopt", "metricopt-outputs"}

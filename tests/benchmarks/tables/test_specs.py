"""The specs of every experiment and tier."""

from collections import Counter

import pytest

from benchmarks.arms.diagnosis import HEALTH_OBSERVATIONS
from benchmarks.problems.detection.pipeline import DetectionSettings
from benchmarks.problems.episodes.learning import ImageLearning, SineLearning
from benchmarks.problems.fitted.pipeline import FittedSettings
from benchmarks.problems.images.settings import ImageSettings
from benchmarks.problems.photographs.pipeline import PhotographSettings
from benchmarks.problems.retrieval.settings import RetrievalSettings
from benchmarks.problems.structured.contract import StructuredSettings
from benchmarks.problems.tabular.pipeline import TabularSettings
from benchmarks.rows.controls import SEARCHES
from benchmarks.runs.codec import decode, encode
from benchmarks.runs.spec import check_unique
from benchmarks.runs.store import read_jsonl
from benchmarks.tables.registry import experiment_names, find_experiment
from benchmarks.tables.table import all_rows
from metricopt.errors import ConfigError
from tests.benchmarks.problems.data_variants import set_variants
from tests.source_tree import ROOT

OURS = "metricopt-outputs"
VARIANTS = {
    "a9a": "full",
    "breast_cancer": "full",
    "cifar10": "full",
    "cifar100": "full",
    "covtype": "sample80000",
    "digits": "full",
}
"""Those of the data that the committed records were made with."""
SETTINGS = {
    "few-shot-images": ImageLearning,
    "sine-waves": SineLearning,
    "fitted": FittedSettings,
    "tabular": TabularSettings,
    "images": ImageSettings,
    "imagenet": PhotographSettings,
    "retrieval": RetrievalSettings,
    "detection": DetectionSettings,
    "structured": StructuredSettings,
}
COMMITTED = sorted((ROOT / "results").glob("*/local/records.jsonl"))


@pytest.fixture(autouse=True)
def variants(monkeypatch):
    """Have the data variants of the committed records, data or not."""
    set_variants(monkeypatch, VARIANTS.__getitem__)


def specs_of(name, tier, replicates=None):
    return find_experiment(name).specs(tier, replicates, True)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parts[-3])
def test_committed_records_are_of_the_experiments_specs(path):
    """Each is planned, and there is one of everything planned."""
    name = path.parts[-3]
    built, committed = specs_of(name, "local"), read_jsonl(path)
    digests = {spec.digest for spec in built}
    assert {record.spec.digest for record in committed} <= digests
    assert {place_of(record.spec) for record in committed} == set(map(place_of, built))


def place_of(spec):
    return spec.block, spec.row, spec.column


def test_searches_of_table_3_have_fewer_replicates_than_other_rows():
    specs = specs_of("table3", "local")
    counts = Counter(map(place_of, specs))
    ten = {row.name for row in all_rows() if row.is_primary}
    searches = {row.name for row in SEARCHES}
    for (block, row, _), count in counts.items():
        if block == "natural" or row in searches:
            assert count == 5
        elif row in ten:
            assert count == 10
    few = Counter(map(place_of, specs_of("table3", "local", 2)))
    assert set(few.values()) == {2}
    every = Counter(map(place_of, specs_of("table3", "paper")))
    assert set(every.values()) == {10}


def test_a_size_decides_how_many_value_functions_metricopt_trains():
    specs = specs_of("table1", "local")
    trained = {spec.row for spec in specs if spec.value_functions == 3}
    forms = {spec.row for spec in specs if spec.arm.name.startswith("metricopt")}
    forms |= {spec.row for spec in specs if spec.arm.kind == "learned-optimizer"}
    assert trained == {row for row in forms if not row.startswith("metricopt-outputs")}
    assert {s.value_functions for s in specs if s.row not in trained} == {1}


@pytest.mark.parametrize("name", experiment_names())
def test_settings_are_read_back_and_places_are_unique(name):
    specs = specs_of(name, "smoke")
    check_unique(specs)
    for spec in specs:
        settings = decode(SETTINGS[spec.pipeline.name], spec.pipeline.settings)
        assert encode(settings) == spec.pipeline.settings


@pytest.mark.parametrize("tier", ["paper", "local", "smoke"])
@pytest.mark.parametrize("name", experiment_names())
def test_a_value_function_is_checked_on_trajectories_that_are_long_enough(name, tier):
    checked = [spec for spec in specs_of(name, tier, 1) if spec.diagnose]
    assert all(s.budget.gradient_steps >= HEALTH_OBSERVATIONS for s in checked)


@pytest.mark.parametrize("name", experiment_names())
def test_replicates_change_nothing_else(name):
    whole = {spec.digest for spec in specs_of(name, "paper", 2)}
    first = {spec.digest for spec in specs_of(name, "paper", 1)}
    assert first < whole
    assert len(whole) == 2 * len(first)


@pytest.mark.parametrize("name", experiment_names())
def test_what_the_command_line_asks_for_is_checked(name):
    with pytest.raises(ConfigError, match="unknown tier 'huge'; known: paper, local"):
        specs_of(name, "huge")
    with pytest.raises(ConfigError, match="unknown tier 'huge'; known: paper, local"):
        find_experiment(name).layout("huge")
    with pytest.raises(ConfigError, match="replicates must be at least 1, got 0"):
        specs_of(name, "smoke", 0)


def test_the_smoke_tier_shortens_what_takes_long_and_keeps_what_is_asked_for():
    short, long = (
        {
            spec.row: spec.arm.settings
            for spec in specs_of("table3", tier)
            if spec.column in ("digit-8/f1", "a9a/f1")
        }
        for tier in ("smoke", "local")
    )
    losses = {"losses": ["prior-adjusted", "class-weighted"]}
    assert long["weighted-loss"] == {"settings": losses}
    assert short["weighted-loss"] == {"settings": losses | {"marks": [3, 6]}}
    assert short["cma-es"] == long["cma-es"] == {}
    assert short[OURS]["search"] == {"steps": 5}
    assert long[OURS] == {}

"""The tables of few-shot learners: run at tier smoke, begun at tier paper."""

from dataclasses import replace
from itertools import count, islice

import pytest

from benchmarks.data.few_shot.contract import PARTS
from benchmarks.execution.networks import networks_of, prepare
from benchmarks.execution.runner import run_all
from benchmarks.problems.episodes import class_splits
from benchmarks.problems.episodes.networks import Conv4Settings
from benchmarks.problems.episodes.tiers import images
from benchmarks.report.page import write_report
from benchmarks.report.verify import verify
from benchmarks.runs.codec import decode
from benchmarks.runs.notes import INNER_STEPS
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.data.few_shot.miniature import write_miniimagenet, write_omniglot
from tests.benchmarks.tables.test_specs import SETTINGS

SHOWN = {
    "few-shot": ("nearest-class-mean", "maml", "mirror-descent"),
    "few-shot-convergence": ("maml", "mirror-descent"),
    "sine": ("maml", "block-iaf"),
}
"""Some rows of every table."""


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A cache in which tables find the learners of others."""
    return tmp_path_factory.mktemp("learners")


@pytest.mark.parametrize("name", SHOWN)
def test_a_table_runs_and_its_report_is_verified(name, learned, tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(learned))
    experiment, store = find_experiment(name), RunStore(tmp_path / "runs")
    specs = [s for s in experiment.specs("smoke", None, True) if s.row in SHOWN[name]]
    prepare(specs)
    assert all(learner.is_made for learner in networks_of(specs))
    run_all(specs, store, workers=1)
    records = [store.get(spec) for spec in specs]
    assert all(record.finished for record in records)
    asked = {
        decode(SETTINGS[s.pipeline.name], s.pipeline.settings).episodes.test_episodes
        for s in specs
    }
    assert {len(record.values("test")) for record in records} == asked
    noting = [record for record in records if INNER_STEPS in record.notes]
    assert noting == (records if name == "few-shot-convergence" else [])
    layout = experiment.layout("smoke")
    # Rows that were not run are none of the page.
    kept = tuple(row for row in layout.rows if row.name in SHOWN[name])
    layout = replace(
        layout,
        rows=kept,
        over_tasks=replace(layout.over_tasks, rows=SHOWN[name][-1:], against=("maml",)),
    )
    folder = tmp_path / name / "smoke"
    files = {path.name for path in write_report(layout, records, folder)}
    assert ("adaptation-new-tasks.png" in files) == bool(noting)
    assert verify(layout, folder) == []
    page = (folder / "table.md").read_text()
    assert "## Task by task" in page and "diverged" in page
    assert ("## Inner steps to the accuracy of MAML" in page) == bool(noting)


def test_learners_are_shared_by_tables():
    few, course = (
        {
            n.digest
            for n in networks_of(find_experiment(name).specs("local", None, None))
        }
        for name in ("few-shot", "few-shot-convergence")
    )
    assert len(few) == 84 and course < few and len(course) == 72


def test_five_way_tasks_of_omniglot_are_a_check_of_maml_alone():
    for tier, data in (("local", "omniglot-small"), ("paper", "omniglot")):
        specs = find_experiment("few-shot").specs(tier, None, None)
        rows = {s.row for s in specs if s.column == f"{data}/5-way-1-shot"}
        assert rows == {"nearest-class-mean", "maml"}


def test_a_course_is_noted_in_every_replicate_of_convergence_alone():
    for name in SHOWN:
        pictured = {
            s.pictured for s in find_experiment(name).specs("smoke", None, None)
        }
        assert pictured == {name == "few-shot-convergence"}


def started(problem):
    """A problem of tier paper, meta-trained for one iteration, with few channels."""
    learning = problem.learning
    assert learning.network.channels == 64
    training = replace(
        learning.training, iterations=1, episodes=1, validations=1, validated=1
    )
    own = replace(learning, training=training, network=Conv4Settings(channels=4))
    return replace(problem, learning=own).tested_on(1, None)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty data root with a cache of its own."""
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("data", "row"), [("miniimagenet", "mirror-descent"), ("omniglot", "maml")]
)
def test_tier_paper_begins_on_the_official_files_in_miniature(
    data, row, root, monkeypatch
):
    if data == "miniimagenet":
        names = (f"n{number:08}" for number in count(1))
        classes = {part: [*islice(names, 5)] for part in PARTS}
        files = {"numbers": range(10, 210, 10), "places": range(2, 20)}
        write_miniimagenet(root, monkeypatch, classes, **files)
    else:
        write_omniglot(root, monkeypatch, each=31, drawings=16)
        counts = {"train": 21, "val": 20}
        monkeypatch.setattr(class_splits, "MAML_COUNTS", counts)
    problem = next(p for p in images("paper") if p.name.startswith(f"{data}/"))
    asked = started(problem).here(False).learned_by(row, {})
    specs = find_experiment("few-shot").specs("paper", 1, None)
    spec = next(s for s in specs if (s.row, s.column) == (row, problem.name))
    spec = replace(spec, pipeline=asked.pipeline())
    store = RunStore(root / "runs")
    prepare([spec])
    run_all([spec], store, workers=1)
    record = store.get(spec)
    assert record.finished and len(record.values("test")) == 1
    assert record.data["variant"] == data

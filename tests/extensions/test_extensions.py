"""Units built outside the packages, in a table and in a figure."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from baselines.network_methods.contract import NETWORK_METHODS
from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.execution.runner import execute, run_all
from benchmarks.problems.contract import PIPELINES, SealedError, make_pipeline
from benchmarks.report.figures.query_curves import query_curves
from benchmarks.report.page import build, write_report
from benchmarks.runs.environment import environment
from benchmarks.runs.paths import cache_root
from benchmarks.runs.store import RunStore, gather, read_jsonl
from benchmarks.tables.registry import EXPERIMENTS, find_experiment
from metricopt.methods.contract import METHODS
from metricopt.metrics.base import METRICS, to_cost
from tests.extensions import experiment
from tests.extensions.experiment import (
    EXTENSIONS,
    NAME,
    ON_IMAGES,
    POINTS,
    QUERIES,
    RANK_3,
    RANK_10,
    RECALL,
    SIZE,
    TO_RANK,
    TO_RECALL,
)
from tests.extensions.methods import MetricSelected, RidgeDescent, stretch_embedding
from tests.extensions.metrics import FirstHitRank, RecallAtOne
from tests.extensions.registered import registered
from tests.extensions.retrieval_pipeline import RetrievalPipeline

UNITS = (
    (METRICS, "recall-at-1", RecallAtOne),
    (METRICS, "first-hit-rank", FirstHitRank),
    (METHODS, "ridge-descent", RidgeDescent),
    (NETWORK_METHODS, "metric-selected", MetricSelected),
    (PIPELINES, "unseen-digits", RetrievalPipeline),
    (ARMS, "stretch-embedding", ArmKind(stretch_embedding)),
    (EXPERIMENTS, NAME, EXTENSIONS),
)
FIGURE = f"query_curves-{experiment.BLOCK}"
REPLICATES = range(SIZE.replicates)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("extensions")
        patch.setenv("METRICOPT_CACHE", str(folder / "cache"))
        yield folder


@pytest.fixture(scope="module", autouse=True)
def units(cache):
    with ExitStack() as stack:
        for unit in UNITS:
            stack.enter_context(registered(*unit))
        yield


@pytest.fixture(scope="module")
def suite(cache):
    """All runs of the experiment and their report."""
    found = find_experiment(NAME)
    specs, layout = found.specs("smoke", None, True), found.layout("smoke")
    store = RunStore(cache / "runs")
    assert run_all(specs, store, workers=1) == specs
    records = gather(store, specs)
    written = write_report(layout, records, cache / "report")
    return SimpleNamespace(
        specs=specs, layout=layout, records=records, written=written, store=store
    )


def of(suite, row, column=TO_RECALL):
    return [r for r in suite.records if (r.spec.row, r.spec.column) == (row, column)]


def table_rows(suite):
    """Cells of the main table by label of the row."""
    lines = (suite.written[0].parent / "table.md").read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| method"))
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in lines[start:]]
    end = next(at for at, line in enumerate(lines[start:]) if not line)
    header, _, *rows = cells[:end]
    return header, {row[0]: row[1:] for row in rows}


def test_all_runs_are_done_and_never_repeated(suite):
    assert {(r.status, r.message) for r in suite.records} == {("done", "")}
    assert all(record.finished for record in suite.records)
    assert run_all(suite.specs, suite.store, workers=1) == []


def test_every_arm_is_a_row_of_one_table(suite):
    header, rows = table_rows(suite)
    assert list(rows) == [row.label for row in experiment.ROWS]
    assert len(rows) >= 9
    assert header == [
        "method",
        "unseen digits, recall at 1 ↑",
        "unseen digits, rank of 3 ↓",
        "unseen digits, rank of 10 ↓",
        "unseen digits, towards rank of 10 ↓",
        "digits MCR ↓",
        "queries",
    ]
    for label, cells in rows.items():
        assert all(f"({SIZE.replicates})" in text for text in cells[:3]), label
    ridge = of(suite, "ridge")
    means = [sum(r.values("test", RANK_10.label)) / 2 for r in ridge]
    assert rows["ridge descent"][2].startswith(f"{sum(means) / 2:.2f}±")


def test_every_arm_that_queries_is_a_line_of_one_figure(suite):
    block = suite.layout.blocks[0]
    figure = query_curves(suite.layout, suite.records, block)
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    spending = [row.label for row in experiment.ROWS if of(suite, row.name)[0].queries]
    observe = "observe split (thin, hollow)"
    assert sorted(labels) == sorted([*spending, observe])
    assert len(labels) >= 9
    assert "stretched embedding" in labels and "network, epoch by metric" in labels
    assert len(figure.axes) == 5
    drawn = [panel.get_legend_handles_labels() for panel in figure.axes]
    assert len(drawn[0][1]) == len(labels)
    last = {"random search", "network, epoch by metric", observe}
    assert set(drawn[4][1]) == last
    looks = {
        (label, lines.get_color(), lines.get_linestyle(), lines.get_marker())
        for handles, names in drawn
        for handle, label in zip(handles, names, strict=True)
        for lines in [handle[0] if isinstance(handle, tuple) else handle]
    }
    assert len({look[1:] for look in looks}) == len(labels)
    assert {panel.get_ylabel().splitlines()[1] for panel in figure.axes} == {
        "(fraction, higher is better)",
        "(fraction, lower is better)",
        "(rank, lower is better)",
    }


def test_the_report_is_a_pure_function_of_its_records(suite):
    folder = suite.written[0].parent
    names = {path.name for path in suite.written}
    assert {"table.md", "table.csv", "table.tex", f"{FIGURE}.png"} <= names
    assert (folder / f"{FIGURE}.png").read_bytes().startswith(b"\x89PNG")
    assert f"![{FIGURE}.png]" in (folder / "table.md").read_text()
    again = build(suite.layout, read_jsonl(folder / "records.jsonl"))
    for name in ("table.md", f"{FIGURE}.png"):
        assert again[name] == (folder / name).read_bytes()


def test_a_run_is_judged_by_several_metrics_at_once(suite):
    labels = {RECALL.label, "first-hit-rank(k=3)", "first-hit-rank(k=10)"}
    assert {RANK_3.label, RANK_10.label} < labels
    for record in of(suite, "cma-es"):
        assert set(record.test) == set(record.observe) == labels
        assert all(set(point.test) == labels for point in record.trace)
        (three,), (ten,) = (
            record.values("test", RANK_3.label),
            record.values("test", RANK_10.label),
        )
        assert 1 <= three <= min(ten, 4)
    assert {len(set(r.test)) for r in of(suite, "ridge", TO_RANK)} == {1}


def test_a_search_towards_a_rank_lowers_it_on_observe(suite):
    (untouched, *_), (searched, *_) = (
        of(suite, row, TO_RANK) for row in ("cross-entropy", "random-search")
    )
    before, after = (r.values("observe")[0] for r in (untouched, searched))
    assert after < before
    assert searched.trace[0].observe[RANK_10.label] == [before]


def test_the_preparation_is_shared_by_two_rows_and_charged_to_both(suite):
    for replicate in REPLICATES:
        long, short = (of(suite, row)[replicate] for row in ("ridge", "ridge-short"))
        assert long.shared_queries == short.shared_queries == POINTS
        assert (long.queries, short.queries) == (POINTS + 21, POINTS + 10)
        assert long.queried == {"observe": POINTS + 2 * 21}
        assert short.queried == {"observe": POINTS + 2 * 10}
        assert long.seconds["value function"] == short.seconds["value function"]
    # One towards the recall and one towards the rank, beside that of MetricOpt.
    kept = list((cache_root() / "artifacts" / "preparation").iterdir())
    assert len(kept) == len(REPLICATES) * (2 + 1)


def test_the_network_method_trains_on_images_and_on_tuples(suite):
    for record in of(suite, "selected", ON_IMAGES):
        assert record.queries == record.queried["observe"] == 2
        assert record.values("test")[0] < 0.5
        assert record.data["theta"]
    for record in of(suite, "selected"):
        assert record.queries == record.queried["observe"] == 4
        assert 1 <= record.notes["best_epoch"] <= 4
        assert record.gradient_steps == 4 * (500 // 32)


def test_the_own_arm_is_charged_and_sealed(suite, cache):
    for record in of(suite, "stretch"):
        assert record.queried == {"observe": QUERIES}
        found = [point.observe[RECALL.label][0] for point in record.trace]
        assert found == sorted(found) and found[-1] == record.values("observe")[0]

    def peek(spec, pipeline, metric):
        pipeline.encoded("test")

    spec = of(suite, "stretch")[0].spec
    pipeline = make_pipeline(spec.pipeline, 0)
    with registered(ARMS, "peek", ArmKind(peek)):
        record = execute_arm(spec, pipeline, "peek", cache)
    assert record.status == "failed" and "read once, by the runner" in record.message


def execute_arm(spec, pipeline, kind, cache):
    spec = replace(spec, arm=replace(spec.arm, kind=kind))
    return execute(spec, pipeline, RunStore(cache / kind), environment())


@pytest.mark.parametrize("kind", ["class-offsets", "threshold-shift"])
def test_arms_that_need_one_tensor_fail_with_the_reason(suite, cache, kind):
    spec = of(suite, "stretch")[0].spec
    pipeline = make_pipeline(spec.pipeline, 0)
    record = execute_arm(spec, pipeline, kind, cache)
    assert record.status == "failed"
    assert "in one tensor, got a tuple of 2 tensors" in record.message


def test_examples_are_lazy_and_splits_share_no_class(suite):
    pipeline = make_pipeline(of(suite, "ridge")[0].spec.pipeline, 0)
    splits = pipeline.splits
    seen = [
        set(s.targets.tolist()) for s in (splits.train, splits.observe, splits.test)
    ]
    assert seen == [{0, 1, 2, 3, 4}, {5, 6}, {7, 8, 9}]
    pipeline.task(pipeline.metric(RECALL))
    reads = {name: images.reads for name, images in pipeline.images.items()}
    assert reads["observe"] >= 200 and reads["test"] == 0
    with pipeline.sealed(), pytest.raises(SealedError):
        pipeline.encoded("test")
    assert pipeline.train_loss(torch.zeros(3, pipeline.adapter.size)).shape == (3,)


def naive_rank(embedding, targets, at, k):
    cosine = torch.nn.functional.cosine_similarity
    others = [j for j in range(len(targets)) if j != at]
    others.sort(key=lambda j: -cosine(embedding[at], embedding[j], dim=0).item())
    same = [targets[j] == targets[at] for j in others[:k]]
    return same.index(True) + 1 if any(same) else k + 1


def test_metrics_equal_their_definition():
    generator = torch.Generator().manual_seed(0)
    embedding = torch.randn(25, 3, generator=generator, dtype=torch.float64)
    targets = torch.randint(6, (25,), generator=generator)
    targets[0] = 9  # without a second one
    outputs = torch.zeros(25, 1), embedding
    for k in (1, 4):
        ranks = [naive_rank(embedding, targets, at, k) for at in range(25)]
        assert ranks[0] == k + 1
        found = FirstHitRank(k).value(outputs, targets)
        assert found == pytest.approx(sum(ranks) / 25)
    first = Counter(naive_rank(embedding, targets, at, 1) for at in range(25))[1]
    assert RecallAtOne().value(outputs, targets) == pytest.approx(first / 25)
    cost = to_cost(FirstHitRank(4), torch.tensor([1.0, 3.0, 5.0]))
    assert cost.tolist() == [0.0, 0.5, 1.0]


def test_registries_are_left_as_they_were():
    name = "for-a-moment"
    with registered(METRICS, name, RecallAtOne):
        assert name in METRICS
    assert name not in METRICS

"""The layouts of every experiment go with its specs."""

from functools import cache

import pytest

from benchmarks.arms.contract import sees
from benchmarks.problems.pretrained.pipeline import network_of
from benchmarks.report.cells import judge
from benchmarks.rows.contract import Row
from benchmarks.runs.paths import TIERS
from benchmarks.runs.spec import Arm
from benchmarks.tables.registry import experiment_names, find_experiment
from tests.benchmarks.runs.record_cases import make_record, make_spec

FINE_TUNING = {"loss-only", "loss-only-dense"}
FINE_TUNING |= {"metricopt", "metricopt-literal", "metricopt-mirror"}
EPISODES = {"few-shot-images", "sine-waves"}
CASES = [(name, tier) for name in experiment_names() for tier in TIERS]


@cache
def specs_of(name, tier):
    return find_experiment(name).specs(tier, 1, None)


@cache
def layout_of(name, tier):
    return find_experiment(name).layout(tier)


@pytest.fixture(scope="module", autouse=True)
def caches_are_cleared():
    """All specs of all tables are many."""
    yield
    specs_of.cache_clear()
    layout_of.cache_clear()


@pytest.mark.parametrize(("name", "tier"), CASES)
def test_every_run_has_a_place_and_every_place_a_run(name, tier):
    layout, specs = layout_of(name, tier), specs_of(name, tier)
    assert {spec.row for spec in specs} <= set(layout.row_names)
    columns = {column.source for column in layout.columns}
    assert {spec.column for spec in specs} == columns
    assert {spec.block for spec in specs} == {block.name for block in layout.blocks}


@pytest.mark.parametrize(("name", "tier"), CASES)
def test_columns_show_a_metric_that_their_runs_are_judged_by(name, tier):
    specs = specs_of(name, tier)
    for column in layout_of(name, tier).columns:
        own = [spec for spec in specs if spec.column == column.source]
        shown = {column.metric.label, column.compare_metric} - {""}
        for spec in own:
            assert shown <= {unit.label for unit in spec.metrics}


def told_wrongly(rows, specs):
    """Rows, with what the arm of a spec sees, that say it sees something else."""
    told = {row.name: row.sees for row in rows}
    found = {(spec.row, sees(spec.arm)) for spec in specs}
    return {(row, seen) for row, seen in found if told[row] not in ("", seen)}


@pytest.mark.parametrize("name", experiment_names())
def test_rows_say_what_their_arms_see(name):
    layout = layout_of(name, "local")
    assert not told_wrongly(layout.rows, specs_of(name, "local"))


def test_a_row_that_says_another_word_than_its_arm_is_found():
    specs = [
        make_spec("cma-es"),
        make_spec("metricopt"),
        make_spec("shift", arm=Arm("threshold-shift")),
    ]
    rows = [
        Row("cma-es", "CMA-ES", sees="metric values"),
        Row("metricopt", "MetricOpt"),
        Row("shift", "threshold shift", sees="loss gradients"),
    ]
    assert told_wrongly(rows, specs) == {("shift", "outputs and labels")}
    assert told_wrongly(rows[:2], specs[:2]) == set()


@pytest.mark.parametrize("name", experiment_names())
def test_rows_that_start_alike_fine_tune_the_adapter_of_their_base(name):
    layout = layout_of(name, "local")
    rows = {row.name: row for row in layout.rows}
    specs = {(s.block, s.column, s.row): s for s in specs_of(name, "local")}
    for (block, column, row), spec in specs.items():
        base = specs.get((block, column, rows[row].base_row), spec)
        adapters = [one.pipeline.settings.get("adapter") for one in (spec, base)]
        tuned = spec.arm.kind == "method" and spec.arm.name in FINE_TUNING
        tuned |= spec.arm.kind in ("learned-optimizer", "other-loss")
        alike = spec.pipeline.name in EPISODES  # all learners get the same tasks
        alike |= tuned and adapters[0] == adapters[1]
        assert rows[row].same_starts == alike


@pytest.mark.parametrize("name", experiment_names())
def test_replicates_overlap_unless_the_data_set_has_a_test_part(name):
    fixed = {"cars196-sop-format", "drawn-shapes", "bccd-voc-subset", "drawn-cells"}
    fixed |= {"imagenette-subset", "drawn-folders", "lspet-upright", "drawn-people"}
    fixed |= {"lfwcrop"}
    fixed |= {"cmrc2018-dev", "made-questions", "made-sentences"}
    fixed |= {"multi30k-en-de", "ro-sts-en-ro", "ro-sts-ro-en"}
    for tier, official in (("local", {"cifar10", *fixed}), ("smoke", fixed)):
        specs = specs_of(name, tier)
        for column in layout_of(name, tier).columns:
            own = [s.pipeline for s in specs if s.column == column.source]
            if all(pipeline.name in EPISODES for pipeline in own):
                assert column.test_per_train == 0  # no class to test is trained on
                continue
            if all(pipeline.name == "fitted" for pipeline in own):
                assert column.test_per_train == 0  # half of a table is its test part
                continue
            (data,) = {pipeline.settings["problem"]["dataset"] for pipeline in own}
            assert (column.test_per_train > 0) == (data not in official)


@pytest.mark.parametrize("name", experiment_names())
def test_hand_made_records_of_all_runs_make_a_table(name):
    records = []
    for spec in specs_of(name, "smoke"):
        values = {unit.label: [0.5, 0.25] for unit in spec.metrics}
        facts = {"data": {"variant": "none"}, "observe": values, "test": values}
        records.append(make_record(spec, **facts))
    layout = layout_of(name, "smoke")
    cells = judge(layout.fitted(records), records)
    shown = [
        record.spec.cell
        for column in layout.columns
        for record in records
        if record.spec.column == column.source
    ]
    assert len(cells) == len(shown)
    assert not [cell.trouble for cell in cells if cell.trouble]


def test_runs_share_a_network_if_problem_backbone_and_replicate_are_the_same():
    specs = {
        spec.row: spec
        for spec in specs_of("table1", "local")
        if spec.column == "cifar10/mcr"
    }
    name = network_of(specs["cma-es"])
    assert name.startswith("cifar10, resnet32, cross-entropy, replicate 0 (")
    assert network_of(specs["metricopt"]) == name
    # It goes on from that network: another one, of the same loss.
    longer = network_of(specs["longer"])
    assert longer.startswith("cifar10, resnet32, cross-entropy, replicate 0 (")
    assert longer != name
    assert network_of(specs["large-margin"]) != name
    ablation = {spec.row: spec for spec in specs_of("figs4", "local")}
    assert len({network_of(spec) for spec in ablation.values()}) == 1
    assert network_of(ablation["earlier"]) == name

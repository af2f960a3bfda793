"""The units CONTRIBUTING.md and docs/using.md show keep the contracts of their kinds.

Python blocks marked `py` are such units; each registers itself, here for one test.
"""

import re
import tomllib
from importlib import import_module

import pytest
import torch
from sklearn.metrics import recall_score

from baselines.losses.contract import LOSSES
from benchmarks.cli import catalogue
from benchmarks.data.contract import DATASETS
from metricopt.losses.portfolio import PORTFOLIO
from metricopt.methods.contract import METHODS
from metricopt.methods.result import Budget
from metricopt.metrics.base import METRICS
from metricopt.statistics.contract import STATISTICS
from tests.metricopt.on_outputs.outputs_task import digits_task
from tests.metricopt.quadratic_task import QuadraticTask
from tests.source_tree import ROOT

PARTS = (ROOT / "CONTRIBUTING.md").read_text().split("```")
USING = (ROOT / "docs" / "using.md").read_text()
BLOCKS = [
    (re.findall(r"`([\w/]+\.py)`", before)[-1], block.removeprefix("py\n"))
    for before, block in zip(PARTS[::2], PARTS[1::2], strict=False)
    if block.startswith("py\n")
]


def forget_later(monkeypatch, *registries):
    """Have registries forget after a test what it registers."""
    for registry in registries:
        # Filled now: what fills itself under the test would be forgotten, too.
        known = {name: registry.get(name) for name in registry}
        monkeypatch.setattr(registry, "_units", known)


@pytest.fixture(autouse=True)
def units(monkeypatch):
    """Run every block, and forget what it registered afterwards."""
    forget_later(monkeypatch, METRICS, LOSSES, METHODS, DATASETS)
    for path, code in BLOCKS:
        exec(compile(code, path, "exec"), {"__name__": path})


def test_the_files_belong_where_units_are_looked_for():
    paths = [path for path, _ in BLOCKS]
    assert [path.rpartition("/")[0] for path in paths] == [
        "metricopt/metrics",
        "baselines/losses",
        "metricopt/methods",
        "benchmarks/data",
    ]
    assert all((ROOT / path).parent.is_dir() for path in paths)
    assert not any((ROOT / path).exists() for path in paths)


def test_the_metric_is_recall_of_the_negatives():
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(4, 50, 1, generator=generator)
    targets = torch.randint(2, (50,), generator=generator)
    expected = [
        recall_score(targets, (row[:, 0] > 0).long(), pos_label=0) for row in outputs
    ]
    metric = METRICS.get("specificity")()
    assert metric.values(outputs, targets).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("columns", [1, 3])
def test_the_loss_is_the_formula(columns):
    generator = torch.Generator().manual_seed(columns)
    outputs = torch.randn(20, columns, generator=generator, dtype=torch.float64)
    targets = torch.randint(max(columns, 2), (20,), generator=generator)
    terms = []
    for row, label in zip(outputs, targets.tolist(), strict=True):
        scores = row if columns > 1 else torch.stack([torch.zeros_like(row[0]), row[0]])
        p = scores.softmax(0)[label]
        terms.append(-((1 - p) ** 2) * p.log())
    loss = LOSSES.get("focal")
    torch.testing.assert_close(loss(outputs, targets), torch.stack(terms).mean())
    assert torch.autograd.gradcheck(
        lambda z: loss(z, targets), outputs.requires_grad_()
    )


@pytest.mark.parametrize("queries", [1, 2, 9])
def test_the_method_keeps_its_budget_and_improves(queries):
    task = QuadraticTask()
    task.meter.limit = 3 * queries
    generator = torch.Generator().manual_seed(0)
    result = METHODS.get("line-search")().run(
        task, Budget(queries, 0), generator, rows=3
    )
    assert result.phi.shape == (3, task.size)
    assert result.queries == queries
    assert task.queries == 3 * queries
    untouched = task.cost(torch.zeros(1, task.size))
    better = task.cost(result.phi) < untouched
    assert bool(better.all()) == (queries > 1)


def test_the_data_set_is_the_one_its_digest_names(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path))
    data = DATASETS.get("wine")().load(tmp_path)
    assert data.inputs.shape == (178, 13)
    assert torch.bincount(data.targets).tolist() == [59, 71, 48]


def test_packages_are_told_the_groups_of_all_registries():
    (table,) = re.findall(r"\| unit \| group.*?\n\n", USING, re.DOTALL)
    rows = re.findall(r"\| `([\w.]+)` \| `([\w.]+)\.(\w+)` \|", table)
    assert len(rows) == table.count("\n") - 3
    for group, module, variable in rows:
        assert group in getattr(import_module(module), variable)._packages
    kinds = [kind for kind in catalogue.kinds() if kind.module.startswith("metricopt.")]
    assert {row[2] for row in rows} == {kind.variable for kind in kinds}
    (shown,) = re.findall(r"```toml\n(.*?)```", USING, re.DOTALL)
    assert set(tomllib.loads(shown)["project"]["entry-points"]) < {r[0] for r in rows}


@pytest.fixture
def shown_to_users(monkeypatch):
    """Run the statistics and the losses a user is shown, and forget them afterwards."""
    forget_later(monkeypatch, STATISTICS, PORTFOLIO)
    for code in re.findall(r"```py\n(.*?)```", USING, re.DOTALL):
        exec(compile(code, "using.md", "exec"), {"__name__": "using"})


@pytest.mark.usefixtures("shown_to_users")
def test_statistics_and_losses_of_a_user_join_the_task():
    task = digits_task("mcr")
    groups = task.statistics.exact(torch.zeros(1, task.size))
    assert groups["sizes: sizes"].shape == (1, 10)
    assert ((groups["sizes: sizes"] > 0) & (groups["sizes: sizes"] < 1)).all()
    assert "label smoothing, .2" in task.portfolio

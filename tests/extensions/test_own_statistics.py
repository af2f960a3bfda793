"""Statistics of one's own: a metric that nothing here explains is identified."""

from dataclasses import dataclass

import pytest
from torch.nn.functional import one_hot

from metricopt.methods.result import Budget
from metricopt.on_outputs.metricopt_outputs import MetricOptOutputs
from metricopt.statistics.contract import STATISTICS, Statistics
from tests.metricopt.drawn import seeded
from tests.metricopt.on_outputs.outputs_task import digits_task, few


@dataclass(frozen=True)
class Sizes(Statistics):
    """Mean square of the outputs of every class, as a share of 1 + itself."""

    name = "sizes"
    near = "sizes"

    def groups(self, outputs, targets, weights, *, smooth):
        labels = one_hot(targets, outputs.shape[-1]).to(outputs)
        if weights is None:
            weights = outputs.new_ones(len(outputs), len(targets))
        shares = weights[..., None] * labels
        squares = outputs.square().mean(-1)
        means = (squares[..., None] * shares).sum(1) / shares.sum(1).clamp_min(1e-9)
        return {"sizes": (means / (1 + means)).double()}


@pytest.fixture
def _registered():
    STATISTICS.register("sizes")(Sizes)
    yield
    del STATISTICS._units["sizes"]


def quiet(outputs, targets):
    """Better, the smaller the outputs of class 3 are."""
    squares = outputs[targets == 3].square().mean().item()
    return 1 - squares / (1 + squares)


def run(**settings):
    task = digits_task(quiet, higher_is_better=True, **settings)
    return MetricOptOutputs().run(task, Budget(16, 0), seeded())


@pytest.mark.usefixtures("_registered")
def test_a_metric_is_explained_by_statistics_of_ones_own():
    found = run()
    assert "as a function of the sizes" in found.evidence[0].reason
    assert found.evidence[0].gain > 3 * found.evidence[0].error


def test_it_is_not_without_them():
    assert "function of the sizes" not in run(observe=few(100)).evidence[0].reason

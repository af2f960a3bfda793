"""A metric that is undefined on a part of observe costs no call its result."""

from dataclasses import replace

import pytest
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from metricopt import FinetuneOptions, Method, finetune
from metricopt.errors import MetricError
from metricopt.methods.result import last_step
from metricopt.on_outputs.folds import parts_of
from metricopt.tasks.sampling import Split
from tests.metricopt.digits_network import pretrained
from tests.metricopt.drawn import seeded
from tests.metricopt.improving import OBSERVE, found_by_default, improve
from tests.metricopt.on_outputs.outputs_task import digits_task
from tests.metricopt.quadratic_task import QuadraticTask

COUNT = len(OBSERVE[1])
WEIGHTS = torch.rand(COUNT, generator=seeded())
CHECKED = FinetuneOptions("loss-only", queries=20, progress=False)


def weighted(outputs, targets):
    """A metric of the whole split only, as it closes over what stands beside it."""
    right = (outputs.argmax(1) == targets).double()
    return (right * WEIGHTS).sum().item() / WEIGHTS.sum().item()


class Found(Method):
    """Proposes a phi that is given."""

    def __init__(self, phi):
        self.phi = phi

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        return last_step(self.phi.expand(rows, 1, -1), shared_queries=0)


@pytest.fixture(scope="module")
def good():
    """A phi that is better by far for every metric of all classes alike."""
    return found_by_default(14).phi


def test_a_gain_is_seen_without_parts(good):
    options = replace(CHECKED, method=Found(good), higher_is_better=True, queries=18)
    found = improve(pretrained(1), options, metric=weighted)
    reason = found.evidence.reason
    assert "cannot be evaluated on a part of the observe split (metric" in reason
    assert "The size of tensor" in reason
    assert "phi was used for one of 5 parts after another: in all, it gains" in reason
    assert torch.equal(found.phi, good)
    assert found.metric_after > found.metric_before
    assert found.spent.queries <= 18
    assert not any("failed" in warning for warning in found.warnings)


def test_what_gains_nothing_without_parts_is_not_taken(good):
    options = replace(CHECKED, method=Found(-good), higher_is_better=True)
    found = improve(pretrained(1), options, metric=weighted)
    assert not found.phi.any()
    assert "phi was used for one of 5 parts" in found.evidence.reason


def test_a_metric_of_neither_parts_nor_mixtures_leaves_the_network_alone(good):
    answers = {}

    def twice(outputs, targets):
        """Like an examiner who knows two networks, and no third."""
        if len(targets) < COUNT:
            raise ValueError("not a part")
        # Offsets that add up to 0 leave the sum of outputs as it is, not of squares.
        seen = outputs.double().square().sum().item()
        if len(answers) > 3 and seen not in answers:
            raise ValueError("not a mixture")
        value = (outputs.argmax(1) == targets).double().mean().item()
        return answers.setdefault(seen, value)

    options = replace(CHECKED, method=Found(good), higher_is_better=True, queries=18)
    found = improve(pretrained(1), options, metric=twice)
    assert not found.phi.any()
    assert "cannot be checked on parts of the observe split" in found.evidence.reason
    assert "not a mixture" in found.evidence.reason


def test_what_is_mixed_is_the_outputs_of_two_phi():
    task = digits_task("mcr")
    phi = 0.5 * torch.randn(1, task.size, generator=seeded())
    places = torch.randperm(task.examples, generator=seeded())[:50]
    rest = torch.ones(task.examples, dtype=torch.bool)
    rest[places] = False
    both = torch.cat([phi, torch.zeros_like(phi)])
    moved, _ = task.observe_part(both, places)
    _, untouched = task.observe_part(both, rest.nonzero()[:, 0])
    expected = (50 * moved + (task.examples - 50) * untouched) / task.examples
    torch.testing.assert_close(task.observe_within(phi, places)[0], expected)
    assert task.queries == 5


def test_tasks_without_outputs_mix_none():
    task = QuadraticTask()
    with pytest.raises(MetricError, match="does not mix outputs"):
        task.observe_within(torch.zeros(1, task.size), torch.arange(3))
    assert task.queries == 0


def test_every_part_holds_every_label():
    rare = OBSERVE[1] == 3
    kept = torch.cat([rare.nonzero()[:6, 0], (~rare).nonzero()[:, 0]])
    task = digits_task("mcr", observe=Split(*(part[kept] for part in OBSERVE)))
    for seed in range(20):
        parts = parts_of(task, 5, seeded(seed))
        assert sorted(torch.cat(parts).tolist()) == list(range(len(kept)))
        labels = task.statistics.targets
        assert all(len(labels[part].unique()) == 10 for part in parts)


def test_a_rare_label_does_not_end_a_call():
    """Six positives of 300: many a random part has none, and no area under a curve."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    malign = labels == 0
    inputs = torch.tensor(StandardScaler().fit_transform(inputs)).float()
    x = torch.cat([inputs[malign][:6], inputs[~malign][:294]])
    y = torch.zeros(300, dtype=torch.long)
    y[:6] = 1
    torch.manual_seed(0)
    found = finetune(
        torch.nn.Linear(30, 2),
        train=(x, y),
        observe=(x, y),
        loss=torch.nn.CrossEntropyLoss(),
        metric=roc_auc_score,
        options=CHECKED,
    )
    assert "On 5 parts of the observe split it gains" in found.evidence.reason
    assert not any("failed" in warning for warning in found.warnings)

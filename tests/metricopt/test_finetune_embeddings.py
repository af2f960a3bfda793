"""`finetune` on a network of embeddings: classes of observe are none of training."""

import pytest
import torch

import metricopt
from metricopt.methods.result import Budget
from metricopt.on_outputs.cross_fitting import CrossFitting
from metricopt.on_outputs.folds import QUERIES, check_on_folds
from metricopt.on_outputs.metricopt_outputs import MetricOptOutputs
from tests.metricopt.drawn import seeded
from tests.metricopt.embedding_network import (
    FirstHit,
    embedding_task,
    images,
    network,
    together,
)


def recall_at_1(outputs, targets):
    """What a user would write."""
    near = outputs @ outputs.T
    near.fill_diagonal_(-2)
    return (targets[near.argmax(1)] == targets).double().mean().item()


def improved(observe=None, **options):
    return metricopt.finetune(
        network(),
        train=images(40, 6, seed=10),
        observe=observe or images(30, 6, first=500),
        loss=together,
        metric=recall_at_1,
        options=metricopt.FinetuneOptions(higher_is_better=True, **options),
    )


@pytest.fixture(scope="module")
def found():
    return improved()


def test_recall_is_identified_and_rises_on_classes_never_seen(found):
    assert found.evidence.identified is not None
    assert found.spent.queries <= 20
    assert "a function of the neighbours" in found.evidence.reason
    assert found.metric_after > found.metric_before + 0.1
    split = images(40, 6, seed=77)
    with torch.no_grad():
        before = recall_at_1(network()(split.inputs), split.targets)
        found.apply()
        after = recall_at_1(network()(split.inputs), split.targets)
        found.remove()
    assert after > before + 0.1
    gain = found.metric_after - found.metric_before
    assert abs((after - before) - gain) < 0.15


def test_embeddings_get_no_output_offsets_and_no_confusion_matrix(found):
    assert set(found.adapter.parts) == {"adapter"}
    assert found.confusion is None


def test_few_classes_are_not_cross_fitted():
    found = improved(observe=images(9, 8, first=500))
    assert "9 classes is too small to cross-fit" in found.evidence.reason
    assert not found.phi.any()


def test_statistics_are_those_of_embeddings_by_metric_or_by_length():
    by_metric, by_length = embedding_task(), embedding_task(metric=FirstHit())
    by_length._metric.reads = "scores"
    for task in (by_metric, by_length):
        assert task.statistics.compares
        assert task.statistics.kind.names() == ("neighbours",)


def test_its_own_loss_is_the_portfolio_of_embeddings():
    task = embedding_task()
    (name,) = task.portfolio
    phi = torch.zeros(1, task.size)
    losses = [each.losses(phi, seeded(1)) for each in (task, task.portfolio[name])]
    assert name == "its own loss" and torch.equal(*losses)


def test_classes_of_observe_that_are_learned_are_told(found):
    assert not [text for text in found.warnings if "classes of train" in text]
    same = improved(observe=images(30, 6, first=20), queries=8)
    (told,) = [text for text in same.warnings if "classes of train" in text]
    assert told.startswith("20 classes of observe are classes of train: a gain")


def test_the_search_runs_several_rows():
    method = MetricOptOutputs(cross_fitting=CrossFitting(steps=10, samples=10))
    result = method.run(embedding_task(), Budget(15, 0), seeded(3), rows=2)
    assert result.phi.shape == (2, embedding_task().size)
    assert result.notes["identified"] == 1


def test_checks_on_parts_keep_classes_together():
    task = embedding_task()
    checks = check_on_folds(task, 0.1 * torch.ones(1, task.size), seeded(0))
    assert len(checks) == 1
    assert task.queries == QUERIES


class NeedsMany(FirstHit):
    """A metric that refuses a part of the split."""

    def _value(self, outputs, targets):
        if len(targets) < 100:
            raise metricopt.DataError(f"needs 100 images, got {len(targets)}")
        # Of phi, not of what the statistics know.
        return (outputs[:, 0].abs().mean() * 997) % 1


def test_a_metric_that_refuses_parts_is_not_checked_on_them():
    task = embedding_task(metric=NeedsMany())
    result = MetricOptOutputs().run(task, Budget(50, 0), seeded(0))
    assert not result.phi.any()
    reason = result.evidence[0].reason
    assert "cannot be checked on parts of the observe split" in reason
    assert "needs 100 images, got 24" in reason
    assert result.queries == task.queries

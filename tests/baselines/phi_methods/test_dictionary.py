"""The dictionary: what it recognises, what it then costs, and what it leaves out."""

import pytest
import torch

from baselines.phi_methods.dictionary import Dictionary
from metricopt.methods.result import Budget
from metricopt.metrics.neighbours import EmbeddingMetric
from tests.contracts.outputs_task import OutputsTask

ERROR_RATES = ("mcr", "top-1", "jaccard-legacy")


def run(task, queries=20, **settings):
    method = Dictionary(evaluations=300, **settings)
    return method.run(task, Budget(queries, 0), torch.Generator().manual_seed(0))


@pytest.mark.parametrize("metric", ["f-macro", "mcr", "aucpr"])
def test_a_named_metric_is_recognised_and_improved_with_four_queries(metric):
    task = OutputsTask(metric)
    found = run(task)
    assert found.notes == {"recognised": 1.0}
    assert found.queries == task.queries == 4
    assert task.cost(found.phi).item() < task.cost(torch.zeros(1, 6)).item() - 0.1


def test_what_is_left_out_is_searched_with_all_queries():
    task = OutputsTask("mcr")
    assert run(task, left_out=("mcr",)).notes == {"recognised": 1.0}
    task = OutputsTask("mcr")
    found = run(task, left_out=ERROR_RATES)
    assert found.notes == {"recognised": 0.0}
    assert found.queries == task.queries == 20


def test_an_unknown_metric_is_not_recognised():
    def odd(outputs, targets):
        return 0.7 * float((outputs.argmax(1) == targets).double().mean())

    found = run(OutputsTask(odd))
    assert (found.notes, found.queries) == ({"recognised": 0.0}, 20)


def test_scores_of_classes_are_not_taken_for_embeddings(monkeypatch):
    asked = []
    search = EmbeddingMetric._values

    def counted(metric, outputs, targets):
        asked.append(metric.name)
        return search(metric, outputs, targets)

    monkeypatch.setattr(EmbeddingMetric, "_values", counted)
    # Only a metric that reads embeddings would agree, after all others were tried.
    assert run(OutputsTask("recall@1")).notes == {"recognised": 0.0}
    assert set(asked) == {"recall@1"}
    queried = len(asked)
    run(OutputsTask("mcr"))
    assert len(asked) == queried

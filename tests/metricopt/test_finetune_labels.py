"""`finetune` where an example has several labels: properties of handwritten digits."""

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score, f1_score, jaccard_score
from torch import nn

import metricopt
from metricopt.adapters.offsets_alone import OffsetsAlone
from metricopt.reading.meaning import Meaning
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.sampling import Split

PROPERTIES = (
    (0, 2, 4, 6, 8),  # even
    (2, 3, 5, 7),  # prime
    (0, 6, 8, 9),  # with a loop
    (0, 3, 6, 9),  # multiples of 3
    (8,),
    (1,),
)
MACRO = partial(f1_score, average="macro", zero_division=0)


def splits():
    """Train, of which most examples with a loop were lost, observe and test."""
    pixels, digits = load_digits(return_X_y=True)
    has = np.stack([np.isin(digits, some) for some in PROPERTIES], 1)
    inputs, targets = torch.tensor(pixels / 16).float(), torch.tensor(has).float()
    drawn = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    train, observe, test = drawn.tensor_split([500, 900])
    kept = train[(targets[train, 2] == 0) | (torch.arange(500) % 8 == 0)]
    return [Split(inputs[part], targets[part]) for part in (kept, observe, test)]


TRAIN, OBSERVE, TEST = splits()


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    network = nn.Linear(64, len(PROPERTIES))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(
            network(TRAIN.inputs), TRAIN.targets
        ).backward()
        optimizer.step()
    return network


def improved(network, metric, observe=OBSERVE, **settings):
    return metricopt.finetune(
        network,
        train=TRAIN,
        observe=observe,
        loss=nn.BCEWithLogitsLoss(),
        metric=metric,
        progress=False,
        queries=30,
        **settings,
    )


def on_test(network, metric):
    with torch.no_grad():
        return metric(TEST.targets, network(TEST.inputs))


def of_decisions(metric):
    return lambda targets, outputs: metric(targets, (outputs > 0).long())


@pytest.fixture(scope="module")
def of_macro(network):
    return improved(network, MACRO)


@pytest.mark.parametrize(
    ("metric", "share"),
    [(MACRO, 0.9), (partial(jaccard_score, average="samples", zero_division=0), 0.5)],
    ids=["macro F", "Jaccard of examples"],
)
def test_a_metric_of_labels_is_identified_and_gains_on_test(
    network, of_macro, metric, share
):
    score = of_decisions(metric)
    before = on_test(network, score)
    found = of_macro if metric is MACRO else improved(network, metric)
    assert found.method == "metricopt-outputs" and found.evidence.identified is not None
    assert "label decisions" in found.evidence.reason
    after = on_test(found.merge(), score)
    assert after > before + 0.02
    assert after - before > share * (thresholds(network, score) - before)


def thresholds(network, score):
    """The score on test of the threshold of every label with the best F on observe."""
    with torch.no_grad():
        outputs, tested = network(OBSERVE.inputs), network(TEST.inputs)
    best = []
    for label, scores in zip(OBSERVE.targets.T, outputs.T, strict=True):
        grid = scores.quantile(torch.linspace(0, 1, 101))
        values = [f1_score(label, scores >= at, zero_division=0) for at in grid]
        best.append(grid[int(np.argmax(values))])
    return score(TEST.targets, tested - torch.stack(best))


def test_phi_is_in_a_plain_copy_of_the_network(of_macro):
    found = of_macro
    merged = found.merge()
    value = MACRO(OBSERVE.targets, (merged(OBSERVE.inputs) > 0).long())
    assert value == pytest.approx(found.metric_after)
    assert not any("label" in text for text in found.warnings)


def test_a_label_without_positives_is_told(network):
    none = OBSERVE.targets.clone()
    none[:, 4], none[:, 5] = 0, 1
    observe = Split(OBSERVE.inputs, none)
    found = improved(network, MACRO, observe, method="cma-es", no_harm=False)
    assert any("no example with label 4:" in text for text in found.warnings)
    assert any("no example without label 5:" in text for text in found.warnings)


def task_of(outputs, targets):
    """A task of outputs as they are, and targets that say which labels hold."""
    split = Split(outputs, targets)
    return NetworkTask(
        OffsetsAlone(outputs.shape[1]),
        nn.BCEWithLogitsLoss(),
        metricopt.make_metric(average_precision_score),
        train=split,
        observe=split,
        drawing=Drawing(meaning=Meaning("logits", "multi-label")),
    )


def test_several_labels_have_statistics_where_they_are_rows():
    targets = OBSERVE.targets[:40]
    task = task_of(torch.randn(targets.shape), targets)
    kinds = ("label decisions", "label probabilities", "label rankings")
    assert sorted(task.statistics.kind.names()) == list(kinds)
    assert list(task.portfolio) == ["its own loss"]
    maps = targets[..., None]
    assert task_of(torch.randn(maps.shape), maps).statistics is None

"""`finetune` towards a metric by query: pages of digits, of which eights are wanted."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn

import metricopt

PAGE = 20


def splits():
    pixels, digits = load_digits(return_X_y=True)
    inputs = torch.tensor(pixels / 16).float()
    wanted = torch.tensor(np.isin(digits, (3, 8, 9))).float()
    order = torch.randperm(1797, generator=torch.Generator().manual_seed(1))
    parts = order.tensor_split([300, 900])
    pages = [torch.arange(len(part)) // PAGE for part in parts]
    return [
        (inputs[part], wanted[part, None], {"query": page})
        for part, page in zip(parts, pages, strict=True)
    ]


def area(outputs, targets, query):
    """The mean over pages of the area under the ROC curve."""
    targets, outputs = targets.flatten(), outputs.flatten()
    whole = [
        (targets[query == page], outputs[query == page]) for page in query.unique()
    ]
    return float(np.mean([roc_auc_score(y, s) for y, s in whole if 0 < y.mean() < 1]))


def trained(train):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(train[0]), train[1])
        loss.backward()
        optimizer.step()
    return model


def improved(model, train, observe):
    return metricopt.finetune(
        model,
        train=train[:2],
        observe=observe,
        loss=nn.BCEWithLogitsLoss(),
        metric=area,
        higher_is_better=True,
        progress=False,
        queries=20,
    )


def test_an_area_by_query_is_identified_and_gains_on_other_queries():
    train, observe, (inputs, targets, columns) = splits()
    model = trained(train)

    def tested(network):
        with torch.no_grad():
            return area(network(inputs), targets, columns["query"])

    before = tested(model)
    found = improved(model, train, observe)
    assert found.evidence.identified is not None
    assert "by 'query'" in found.evidence.reason
    assert found.metric_after > found.metric_before
    assert tested(found.merge()) > before


def test_too_few_queries_are_not_cross_fitted():
    train, observe, _ = splits()
    few = observe[0][:200], observe[1][:200], {"query": torch.arange(200) // 25}
    found = improved(trained(train), train, few)
    assert "8 queries is too small" in found.evidence.reason
    assert not found.phi.any()

"""Breast cancer with what stands beside the labels, and an unfinished network for it.

The group is whether a tumour's texture is above the median: cancers of both groups look
alike, but are unequally frequent. The amount is the area of the tumour.
"""

import copy
from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

from metricopt import Split, finetune
from tests.metricopt.drawn import seeded

TEXTURE, AREA = 1, 3


@cache
def splits():
    """Return train and observe with the columns group, amount and place."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    groups = np.where(
        inputs[:, TEXTURE] > np.median(inputs[:, TEXTURE]), "rough", "fine"
    )
    order = torch.randperm(len(labels), generator=seeded(0))
    found = []
    for part in order.tensor_split([200]):
        whole = torch.tensor((inputs - inputs.mean(0)) / inputs.std(0)).float()
        columns = {
            "group": groups[part],
            "amount": torch.tensor(inputs[part, AREA]),
            "place": torch.arange(len(part)),
        }
        malignant = torch.tensor(labels == 0).long()
        found.append(Split(whole[part], malignant[part], columns))
    return tuple(found)


@cache
def _trained():
    train, _ = splits()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(30, 6), nn.ReLU(), nn.Linear(6, 2))
        optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
        for _ in range(20):
            optimizer.zero_grad()
            # Benign tumours count more: most cancers near the boundary are missed.
            loss = nn.CrossEntropyLoss(torch.tensor([3.0, 1.0]))
            loss(network(train.inputs), train.targets).backward()
            optimizer.step()
    return network.eval()


def network():
    """Return a copy of a network that misses cancers."""
    return copy.deepcopy(_trained())


def improved(metric, *, model=None, train=None, observe=None, **settings):
    """Return what `finetune` makes of the network."""
    own = splits()
    chosen = {"progress": False, "queries": 20} | settings
    return finetune(
        model or network(),
        train=train or own[0],
        observe=observe or own[1],
        loss=nn.CrossEntropyLoss(),
        metric=metric,
        **chosen,
    )

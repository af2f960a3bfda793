"""A convolutional network pre-trained on digits of which half the classes are rare."""

import copy
from functools import cache

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from tests.metricopt.drawn import seeded

Split = tuple[Tensor, Tensor]


@cache
def splits(seed: int = 0) -> tuple[Split, Split, Split]:
    """Train, where the classes 5 to 9 are ten times rarer, observe and test."""
    pixels, digits = load_digits(return_X_y=True)
    images = torch.tensor(pixels / 16, dtype=torch.float32).view(-1, 1, 8, 8)
    order = torch.randperm(1797, generator=seeded(seed))
    train, observe, test = order.tensor_split([900, 1350])
    labels = torch.tensor(digits)
    common = labels[train] < 5
    kept = train[common | (torch.arange(900) % 10 == 0)]
    return tuple((images[part], labels[part]) for part in (kept, observe, test))


def pretrained(seed: int = 0) -> nn.Module:
    """Return a copy of a network that is trained once."""
    return copy.deepcopy(_pretrained(seed))


@cache
def _pretrained(seed: int) -> nn.Module:
    train = splits()[0]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 10),
        )
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
        for _ in range(15):
            for batch in torch.randperm(len(train[1])).split(64):
                optimizer.zero_grad()
                outputs = network(train[0][batch])
                nn.functional.cross_entropy(outputs, train[1][batch]).backward()
                optimizer.step()
    return network.eval()

"""Real tables with few of their columns, on which small networks err often enough."""

from dataclasses import dataclass
from functools import cache

import torch
from sklearn.datasets import load_breast_cancer, load_wine
from torch import Tensor, nn

COLUMNS = {load_breast_cancer: [0, 1, 4, 5], load_wine: [0, 1, 2, 4, 10]}


@dataclass(frozen=True)
class Table:
    """A network with its splits, each (inputs [N, D], labels [N])."""

    network: nn.Module
    train: tuple[Tensor, Tensor]
    observe: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]

    def given(self):
        """Arguments of `finetune` but for the metric."""
        return {
            "model": self.network,
            "train": self.train,
            "observe": self.observe,
            "loss": nn.CrossEntropyLoss(),
            "progress": False,
        }


@cache
def hard_table(load, *, seed=0, trained=0.25, observed=0.4):
    """Return a table of scikit-learn with class logits; class 1 is the rarer one."""
    inputs, labels = load(return_X_y=True)
    inputs = inputs[:, COLUMNS[load]]
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    if load is load_breast_cancer:
        labels = 1 - labels  # malignant
    inputs, labels = torch.tensor(inputs).float(), torch.tensor(labels)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator)
    ends = [round(share * len(labels)) for share in (trained, trained + observed)]
    parts = [(inputs[part], labels[part]) for part in order.tensor_split(ends)]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        hidden = nn.Linear(inputs.shape[1], 16)
        network = nn.Sequential(hidden, nn.Tanh(), nn.Linear(16, int(labels.max()) + 1))
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(parts[0][0]), parts[0][1]).backward()
        optimizer.step()
    return Table(network, *parts)

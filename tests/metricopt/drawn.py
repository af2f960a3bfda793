"""Random inputs, labels and generators of a seed."""

import torch


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed))


def labels(*shape, classes=3, seed=1):
    return torch.randint(classes, shape, generator=seeded(seed))

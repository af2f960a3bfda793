"""Random inputs, labels and generators for the tests of tasks."""

import torch


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(*shape, classes=3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(classes, shape, generator=generator)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)

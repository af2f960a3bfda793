"""Pairs of photographs to observe, drawn as those of LFW: folds share no class."""

import torch
from torch import Tensor

FOLDS, EACH = 3, 100
"""Folds, and pairs of either kind in each."""


def drawn_pairs(classes: Tensor, generator: torch.Generator) -> Tensor:
    """Return places of the two of each pair, shape [600, 2].

    Classes are dealt out to three folds. A fold has 100 pairs of one class, then 100 of
    two; an image may be in several.

    Args:
        classes: class of every image, two images or more of each, shape [N]; six
            classes or more.
        generator: source of the draw.
    """
    numbers = classes.unique()
    order = numbers[torch.randperm(len(numbers), generator=generator)]
    members = {int(one): (classes == one).nonzero()[:, 0] for one in numbers}
    found = []
    for fold in range(FOLDS):
        own = order[fold::FOLDS].tolist()
        for _ in range(EACH):
            one = own[int(torch.randint(len(own), (), generator=generator))]
            found.append(_some(members[one], 2, generator))
        for _ in range(EACH):
            two = torch.randperm(len(own), generator=generator)[:2].tolist()
            ends = [_some(members[own[each]], 1, generator) for each in two]
            found.append(torch.cat(ends))
    return torch.stack(found)


def _some(places: Tensor, count: int, generator: torch.Generator) -> Tensor:
    return places[torch.randperm(len(places), generator=generator)[:count]]

"""Costs of groups of structured outputs, for the fits of surrogates."""

import torch


def costs_by(metric):
    """Return a function from groups, outputs and targets, to 1 - the metric of each."""

    def costs(groups):
        pairs = zip(*groups, strict=True)
        return torch.stack([1 - metric.values(one[None], t)[0] for one, t in pairs])

    return costs

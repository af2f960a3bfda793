"""Image problems: splits, long tails and label noise, made from a data set by seed."""

import torch
from torch import Tensor

from benchmarks.data.registry import load_dataset
from benchmarks.problems.images.images import Images, channel_statistics
from benchmarks.problems.images.settings import (
    LEARNED_SHARE,
    OBSERVE_SHARE,
    ImageProblem,
)
from benchmarks.problems.splits import Splits, require_classes
from metricopt.process.seeding import make_generator


def load_splits(problem: ImageProblem, replicate: int) -> Splits:
    """Return the splits of an image problem for one replicate.

    A data set with an official test part keeps it. In any other, a random fifth is the
    test part. A tenth of the rest is `observe`.

    Args:
        problem: data set, imbalance, label noise and number of examples.
        replicate: decides the splits, the tail and the noise.

    Raises:
        DataError: if observe lacks a class that training has.
    """
    data = load_dataset(problem.dataset, problem.variant, offline=True)
    generator = make_generator("image split", problem.dataset, replicate)
    learned = data.train_rows or round(LEARNED_SHARE * len(data.targets))
    rows = torch.arange(len(data.targets))
    if data.train_rows is None:
        rows = rows[torch.randperm(len(rows), generator=generator)]
    order = rows[:learned][torch.randperm(learned, generator=generator)]
    observed = round(OBSERVE_SHARE * learned)
    observe, train, test = order[:observed], order[observed:], rows[learned:]
    train = train[: problem.max_examples]
    classes = len(data.classes)
    train = long_tail(train, data.targets, problem.imbalance, generator)
    labels = noisy(data.targets[train], classes, problem.label_noise, generator)
    where = f"the observe split of {data.label}"
    wanted = {label: label for label in labels.unique().tolist()}
    require_classes(where, data.targets[observe], wanted)
    centre, scale = channel_statistics(as_bytes(data.inputs[train]))

    def images(index: Tensor, targets: Tensor) -> Images:
        pixels = as_bytes(data.inputs[index])
        return Images(pixels, targets, centre, scale)

    return Splits(
        images(train, labels),
        images(observe, data.targets[observe]),
        images(test, data.targets[test]),
        data.label,
        data.digest,
        classes,
    )


def as_bytes(inputs: Tensor) -> Tensor:
    """Return images as uint8, channels last: [N, H, W, C].

    Args:
        inputs: bytes in that order already, or values in [0, 1] as [N, C, H, W].
    """
    if inputs.dtype == torch.uint8:
        return inputs
    return (inputs * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def long_tail(
    rows: Tensor, targets: Tensor, imbalance: float, generator: torch.Generator
) -> Tensor:
    """Return rows with an exponential tail: class c keeps n * imbalance^(-c / (C - 1)).

    Args:
        rows: indices of training images, in random order, shape [N].
        targets: labels of all images.
        imbalance: ratio of the first class's count to the last one's, 1 or more.
        generator: shuffles the rows kept, which are the first ones of every class.

    Returns:
        The rows kept, shape [N'], in random order.

    Source: Cui et al., CVPR 2019, Sec. 5.1; n is the count of the rarest class.
    """
    if imbalance == 1:
        return rows
    labels = targets[rows]
    counts = torch.bincount(labels)
    last, most = len(counts) - 1, int(counts.min())
    kept = [
        rows[labels == label][: round(most * imbalance ** (-label / last))]
        for label in range(last + 1)
    ]
    joined = torch.cat(kept)
    return joined[torch.randperm(len(joined), generator=generator)]


def noisy(
    labels: Tensor, classes: int, share: float, generator: torch.Generator
) -> Tensor:
    """Return labels with a share of them replaced by another class, uniformly."""
    if share == 0:
        return labels
    chosen = torch.randperm(len(labels), generator=generator)
    chosen = chosen[: round(share * len(labels))]
    shift = torch.randint(1, classes, chosen.shape, generator=generator)
    changed = labels.clone()
    changed[chosen] = (labels[chosen] + shift) % classes
    return changed

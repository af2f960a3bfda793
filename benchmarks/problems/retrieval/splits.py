"""Retrieval problems: splits without a common class, made by seed."""

import torch
from torch import Tensor

from benchmarks.data.files.decoded import pixels
from benchmarks.data.listed.contract import LISTED
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.retrieval.settings import RetrievalProblem
from benchmarks.problems.splits import Splits
from metricopt.errors import DataError
from metricopt.process.seeding import make_generator

FEWEST = 2
"""Classes that each part needs."""


def load_splits(problem: RetrievalProblem, replicate: int) -> Splits:
    """Return the splits of a retrieval problem for one replicate.

    The data set says which classes are the test, for all replicates. Of the training
    classes a random share is `observe`.

    Labels of train are 0 to C - 1.

    Args:
        problem: data set, size of the images, share that is observed.
        replicate: decides which training classes are observed.

    Raises:
        DataError: if a part would have fewer than two classes, a class of a part one
            image, or files are missing or wrong.
    """
    data = LISTED.get(problem.dataset)().load(offline=True)
    learnable = data.classes[: data.train_rows].unique()
    count = round(problem.observed * len(learnable))
    if min(count, len(learnable) - count) < FEWEST:
        raise DataError(
            f"{data.label} has {len(learnable)} training classes, of which a share of "
            f"{problem.observed} is observed: expected {FEWEST} or more in each part"
        )
    generator = make_generator("retrieval split", problem.dataset, replicate)
    order = learnable[torch.randperm(len(learnable), generator=generator)]
    places = torch.arange(len(data))
    is_train = places < data.train_rows
    observed = is_train & torch.isin(data.classes, order[:count])
    learned = is_train & ~observed
    own, labels = data.classes[learned].unique(return_inverse=True)

    source = pixels(data, problem.side)

    def part(chosen: Tensor, targets: Tensor) -> Photographs:
        return Photographs(source, places[chosen], targets)

    return Splits(
        part(learned, labels),
        part(observed, data.classes[observed]),
        part(~is_train, data.classes[~is_train]),
        data.label,
        data.digest,
        len(own),
        data.supers[learned],
    )

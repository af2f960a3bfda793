"""Problems of photographs: splits made by seed, read when they are needed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.data.files.decoded import DecodedPixels, Pixels, pixels
from benchmarks.data.folders.contract import FOLDERS
from benchmarks.data.registry import find_source, load_dataset, variant_shape
from benchmarks.problems.photographs.settings import PhotographProblem
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.splits import Splits, require_classes
from metricopt.errors import ConfigError, DataError
from metricopt.process.seeding import make_generator


@dataclass(frozen=True, eq=False)
class _Labelled:
    """All images of a data set, those to train first."""

    source: Pixels
    targets: Tensor
    classes: int
    train_rows: int
    label: str
    digest: str


def load_splits(problem: PhotographProblem, replicate: int) -> Splits:
    """Return the splits of a problem for one replicate.

    The data set says which images are the test, for all replicates. Of the training
    images a random part is `observe`.

    Args:
        problem: data set, size of the images, number that is observed.
        replicate: decides which training images are observed.

    Raises:
        ConfigError: if images of one size are asked for at another, or there is no test
            part.
        DataError: if observe takes all training images, lacks a class, or files are
            missing or wrong.
    """
    data = _in_folders(problem) if problem.dataset in FOLDERS else _of_one_size(problem)
    if problem.observed >= data.train_rows:
        raise DataError(
            f"{data.label} has {data.train_rows:,} training images: expected fewer to "
            f"be observed, got {problem.observed:,}"
        )
    generator = make_generator("photograph split", problem.dataset, replicate)
    order = torch.randperm(data.train_rows, generator=generator)
    observed, learned = order[: problem.observed], order[problem.observed :]
    for name, places in (("observe", observed), ("train", learned)):
        where = f"the {name} split of {data.label}"
        require_classes(
            where, data.targets[places], dict(enumerate(range(data.classes)))
        )

    def part(places: Tensor) -> Photographs:
        return Photographs(data.source, places, data.targets[places])

    test = torch.arange(data.train_rows, len(data.targets))
    parts = (part(places) for places in (learned, observed, test))
    return Splits(*parts, data.label, data.digest, data.classes)


def counted(problem: PhotographProblem) -> tuple[int, int, int]:
    """Return how many images train and test, and of how many classes, without data.

    Raises:
        ConfigError: if there is no such data set, or it has no test part.
    """
    if problem.dataset in FOLDERS:
        return FOLDERS.get(problem.dataset).expected
    rows, *_ = variant_shape(problem.dataset, problem.variant)
    source = find_source(problem.dataset)
    specs = {spec.name: spec for spec in source.specs}
    train = _train_rows(specs[problem.variant].train_rows, problem.dataset)
    return train, rows - train, len(source.classes)


def _in_folders(problem: PhotographProblem) -> _Labelled:
    data = FOLDERS.get(problem.dataset)().load(offline=True)
    return _Labelled(
        pixels(data, problem.side),
        data.targets,
        len(data.classes),
        data.train_rows,
        data.label,
        data.digest,
    )


def _of_one_size(problem: PhotographProblem) -> _Labelled:
    data = load_dataset(problem.dataset, problem.variant, offline=True)
    found, wanted = tuple(data.inputs.shape[1:]), (problem.side, problem.side, 3)
    if found != wanted or data.inputs.dtype != torch.uint8:
        raise ConfigError(
            f"{data.label} must hold colour images of {problem.side} x {problem.side} "
            f"pixels, bytes of shape {wanted}, got {data.inputs.dtype} of {found}"
        )
    return _Labelled(
        DecodedPixels(data.inputs.numpy()),
        data.targets,
        len(data.classes),
        _train_rows(data.train_rows, data.label),
        data.label,
        data.digest,
    )


def _train_rows(rows: int | None, name: str) -> int:
    if rows is None:
        raise ConfigError(f"{name} has no test part; expected a data set with one")
    return rows

"""How classes are divided into parts to train, validate and test; by name."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from benchmarks.data.few_shot.contract import (
    PARTS,
    TEST,
    TRAIN,
    VALIDATION,
    ClassImages,
)
from metricopt.errors import ConfigError
from metricopt.registry import Registry

ClassSplit = Mapping[str, Tensor]
"""Numbers of the classes of every part, ascending int64; no two parts share one."""
Splitter = Callable[[ClassImages, torch.Generator], ClassSplit]
HELD_OUT = 0.2
"""Share of the classes to train that validate instead."""
MAML_COUNTS = {TRAIN: 1_100, VALIDATION: 100}
"""Characters of Omniglot; all others test."""

CLASS_SPLITS: Registry[Splitter] = Registry(
    "split of classes", "benchmarks.problems.episodes"
)
"""All ways to divide classes, by name."""


@CLASS_SPLITS.register("given")
def given(images: ClassImages, generator: torch.Generator) -> ClassSplit:
    """Keep every class in the part that the data set gives it, as miniImageNet does."""
    return _given(images)


@CLASS_SPLITS.register("redrawn")
def redrawn(images: ClassImages, generator: torch.Generator) -> ClassSplit:
    """Draw parts as large as those of the data set from all classes."""
    counts = {part: len(own) for part, own in _given(images).items()}
    return _drawn(len(images.classes), counts, generator)


@CLASS_SPLITS.register("held-out-fifth")
def held_out_fifth(images: ClassImages, generator: torch.Generator) -> ClassSplit:
    """Draw the classes that validate from those to train; those to test stay."""
    found = _given(images)
    train = found[TRAIN]
    held = round(HELD_OUT * len(train))
    order = train[torch.randperm(len(train), generator=generator)]
    return {
        TRAIN: order[held:].sort().values,
        VALIDATION: order[:held].sort().values,
        TEST: found[TEST],
    }


@CLASS_SPLITS.register("maml-omniglot")
def maml_omniglot(images: ClassImages, generator: torch.Generator) -> ClassSplit:
    """Draw 1,100 characters to train and 100 to validate; the other 423 test.

    Source: cbfinn/maml, data_generator.py. Differs: every replicate draws. The code
    shuffles once, from the order in which a disk lists its folders.
    """
    rest = len(images.classes) - sum(MAML_COUNTS.values())
    return _drawn(len(images.classes), MAML_COUNTS | {TEST: rest}, generator)


def _given(images: ClassImages) -> dict[str, Tensor]:
    """Return the classes of every part, as the data set gives them.

    Raises:
        ConfigError: if it gives none.
    """
    if not images.parts:
        raise ConfigError(
            f"{images.label} does not divide its classes: expected a split that draws "
            "all parts, such as maml-omniglot"
        )
    return {
        part: torch.tensor([part == own for own in images.parts]).nonzero()[:, 0]
        for part in PARTS
    }


def _drawn(
    classes: int, counts: Mapping[str, int], generator: torch.Generator
) -> ClassSplit:
    """Return parts of given sizes, which together are all classes.

    Raises:
        ConfigError: if there are too few classes.
    """
    if min(counts.values()) < 0:
        expected = sum(count for count in counts.values() if count > 0)
        raise ConfigError(f"expected more than {expected:,} classes, got {classes:,}")
    order = torch.randperm(classes, generator=generator)
    drawn = order.split([counts[part] for part in PARTS])
    return {part: own.sort().values for part, own in zip(PARTS, drawn, strict=True)}

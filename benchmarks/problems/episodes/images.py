"""Episodes of images: N-way K-shot classification of classes not seen before."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.data.few_shot.contract import (
    FEW_SHOT,
    PARTS,
    TEST,
    ClassImages,
)
from benchmarks.data.files.decoded import pixels
from benchmarks.data.files.readers import named
from benchmarks.problems.episodes.class_splits import CLASS_SPLITS
from benchmarks.problems.episodes.contract import TEST_EPISODES, EpisodeSource
from metricopt.errors import ConfigError, require_counts
from metricopt.fewshot.episodes import Episodes
from metricopt.process.seeding import Seeds

TURNS = 4
"""Rotations of a class, by multiples of 90 degrees against the clock."""
WHITE = 255


@dataclass(frozen=True, kw_only=True)
class ImageSettings:
    """What decides the episodes of a replicate.

    Attributes:
        dataset: name of a few-shot data set.
        split: how its classes are divided; see `class_splits`.
        rotated: parts in which every class is four: an episode has one of its four
            rotations, drawn for each class. So four times as many classes are met, and
            no episode asks to tell a character from itself, turned.
        ways: classes of an episode.
        shots: support examples of a class.
        queries: query examples of a class.
        test_queries: the same for episodes to test; None for as many.
        test_episodes: episodes to test.

    Raises:
        ConfigError: if a number is no positive integer, or there is no such part.
    """

    dataset: str
    split: str = "given"
    rotated: tuple[str, ...] = ()
    ways: int = 5
    shots: int = 1
    queries: int = 15
    test_queries: int | None = None
    test_episodes: int = TEST_EPISODES

    def __post_init__(self) -> None:
        counts = ("ways", "shots", "queries", "test_queries", "test_episodes")
        require_counts("an episode", vars(self), *counts)
        unknown = [part for part in self.rotated if part not in PARTS]
        if unknown:
            raise ConfigError(
                f"rotated must name parts of {', '.join(PARTS)}, got {unknown[0]!r}"
            )

    def queries_of(self, part: str) -> int:
        """Return the query examples of a class in the episodes of a part."""
        own = self.test_queries if part == TEST else None
        return self.queries if own is None else own


@dataclass(frozen=True)
class Recipe:
    """What an episode is made of, without an image.

    Attributes:
        classes: the classes, `ways` of them; their places are the labels.
        turns: quarter turns of each class.
        support: places of the support images in the data set, `shots` for each class.
        query: the same of the query images.
    """

    classes: tuple[int, ...]
    turns: tuple[int, ...]
    support: tuple[tuple[int, ...], ...]
    query: tuple[tuple[int, ...], ...]


class ImageEpisodes(EpisodeSource):
    """Episodes of the images of a data set, whose classes a replicate divides.

    Inputs are float32 in [0, 1], channels first. The support of an episode does not
    depend on how many queries follow it.

    Args:
        settings: what decides the episodes.
        replicate: draws the split of classes, where it is drawn, and all episodes.
        offline: never download.

    Attributes:
        images: the data set.
        classes: numbers of the classes of every part.

    Raises:
        ConfigError: if there is no such data set or split, a part has fewer classes
            than `ways`, or a class fewer images than shots and queries together.
        DataError: if files are missing, or an image does not decode.
    """

    def __init__(
        self, settings: ImageSettings, replicate: int, *, offline: bool = True
    ) -> None:
        names = ("episodes", settings.dataset, settings.split, replicate)
        super().__init__(Seeds(*names), settings.test_episodes)
        self.settings = settings
        divide = CLASS_SPLITS.get(settings.split)
        source = FEW_SHOT.get(settings.dataset)()
        self.images: ClassImages = source.load(offline=offline)
        self.classes = divide(self.images, self.seeds.generator("classes"))
        counts = self.images.targets.bincount(minlength=len(self.images.classes))
        _require_enough(settings, self.images, self.classes, counts)
        self._first = (counts.cumsum(0) - counts).tolist()
        self._counts = counts.tolist()
        self._pixels = pixels(self.images, self.images.side)

    @property
    def data(self) -> dict[str, str]:
        """What records say of the data: `variant` and `digest`."""
        return {"variant": self.images.label, "digest": self.images.digest}

    def recipe(self, part: str, number: int) -> Recipe:
        """Return what an episode is made of."""
        ways, shots = self.settings.ways, self.settings.shots
        generator = self.seeds.generator(part, number, ways, shots)
        own = self.classes[part]
        chosen = own[torch.randperm(len(own), generator=generator)[:ways]].tolist()
        turns = torch.randint(TURNS, (ways,), generator=generator).tolist()
        last = shots + self.settings.queries_of(part)
        images = [
            tuple(
                self._first[each] + place
                for place in torch.randperm(
                    self._counts[each], generator=generator
                ).tolist()[:last]
            )
            for each in chosen
        ]
        return Recipe(
            tuple(chosen),
            tuple(turns) if part in self.settings.rotated else (0,) * ways,
            tuple(each[:shots] for each in images),
            tuple(each[shots:] for each in images),
        )

    def _episode(self, part: str, number: int) -> Episodes:
        recipe = self.recipe(part, number)
        labels = torch.arange(self.settings.ways)
        return Episodes(
            self._inputs(recipe.support, recipe.turns),
            labels.repeat_interleave(self.settings.shots),
            self._inputs(recipe.query, recipe.turns),
            labels.repeat_interleave(self.settings.queries_of(part)),
        )

    def _inputs(
        self, places: tuple[tuple[int, ...], ...], turns: tuple[int, ...]
    ) -> Tensor:
        """Return images [n, channels, side, side], those of a class after another."""
        flat = torch.tensor(places).flatten()
        found = self._pixels(flat).split(len(places[0]))
        turned = torch.cat(
            [each.rot90(turn, (1, 2)) for each, turn in zip(found, turns, strict=True)]
        ).movedim(-1, 1)
        # An image in ink is grey: its three channels are the same.
        shown = WHITE - turned[:, :1] if self.images.ink else turned
        return (shown / WHITE).contiguous()


def _require_enough(
    settings: ImageSettings,
    images: ClassImages,
    classes: Mapping[str, Tensor],
    counts: Tensor,
) -> None:
    """Check that every part can fill an episode.

    Raises:
        ConfigError: if it has too few classes, or one of them too few images.
    """
    for part, own in classes.items():
        if len(own) < settings.ways:
            raise ConfigError(
                f"{settings.ways}-way episodes need {settings.ways} classes, "
                f"{images.label} has {len(own)} in part {part}; use fewer ways"
            )
        needed = settings.shots + settings.queries_of(part)
        short = [
            f"{images.classes[each]} with {counts[each]}"
            for each in own.tolist()
            if counts[each] < needed
        ]
        if short:
            raise ConfigError(
                f"{settings.shots} shots and {needed - settings.shots} queries need "
                f"{needed} images of every class, {images.label} has {len(short)} "
                f"classes with fewer ({named(short)}) in part {part}"
            )

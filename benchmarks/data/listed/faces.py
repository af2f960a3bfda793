"""Faces of people with listed pairs, in the layout of Stanford Online Products.

The protocol of LFW (view 2) has pairs of faces in ten folds, which share no person.
People of folds 1 to 3 are the test and are never trained on; their pairs are what
verification is judged by. People with one image are in pairs alone.

Source: G. B. Huang et al., "Labeled Faces in the Wild", UMass 07-49, 2007.
"""

import hashlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from benchmarks.data.files.readers import Reader
from benchmarks.data.listed.contract import HEADER, PARTS, ListedImages, ListedSource
from metricopt.errors import DataError

HELD = 3
"""Folds, the first ones, whose people are the test."""


@dataclass(frozen=True)
class Pair:
    """Names of two faces, and the number of their fold, from 1 on."""

    fold: int
    first: str
    second: str


class FaceReader(Reader):
    """Files of faces, beside lists of who trains and who is the test."""

    @property
    @abstractmethod
    def faces(self) -> Mapping[str, str]:
        """Path of every image by its name, such as "Tony_Blair_0144", in order."""

    @property
    @abstractmethod
    def pairs(self) -> Sequence[Pair]:
        """All listed pairs, in order."""

    @abstractmethod
    def image(self, path: str) -> bytes:
        """Return the file of an image."""

    @cached_property
    def people(self) -> Mapping[str, int]:
        """Number of every person by name, from 1 on."""
        names = sorted({person_of(name) for name in self.faces})
        return {name: number for number, name in enumerate(names, 1)}

    @cached_property
    def held(self) -> Sequence[Pair]:
        """The pairs of the test.

        Raises:
            DataError: if a pair names an image that is not there, or there is no pair.
        """
        found = [pair for pair in self.pairs if pair.fold <= HELD]
        named = [name for pair in found for name in (pair.first, pair.second)]
        missing = [name for name in named if name not in self.faces]
        if missing or not found:
            example = f"none of {missing[0]!r}" if missing else "no pair"
            raise DataError(
                f"expected pairs of folds 1 to {HELD} of images that are there, got "
                f"{example}"
            )
        return found

    @property
    def sizes(self) -> Mapping[str, int]:
        """Paths of the lists and of all images, which have no sizes of their own."""
        return dict.fromkeys([*PARTS, *self.faces.values()], 0)

    def read(self, path: str) -> bytes:
        """Return a list, or an image."""
        return self._list(PARTS.index(path)) if path in PARTS else self.image(path)

    def _list(self, part: int) -> bytes:
        """Return the list of training or of the test, people with several images."""
        held = {person_of(n) for pair in self.held for n in (pair.first, pair.second)}
        images = Counter(map(person_of, self.faces))
        lines = [HEADER]
        for number, (name, path) in enumerate(self.faces.items(), 1):
            person = person_of(name)
            if images[person] > 1 and (person in held) == bool(part):
                lines.append(f"{number} {self.people[person]} 1 {path}")
        return "\n".join(lines).encode()


class FaceSource(ListedSource):
    """A data set of faces; images that only pairs name come after the others."""

    paired = True

    def _read(self, reader: Reader) -> ListedImages:
        assert isinstance(reader, FaceReader)
        images = super()._read(reader)
        named = [n for pair in reader.held for n in (pair.first, pair.second)]
        listed = set(images.paths)
        further = [
            name for name in dict.fromkeys(named) if reader.faces[name] not in listed
        ]
        people = torch.tensor([reader.people[person_of(n)] for n in further]).long()
        paths = (*images.paths, *(reader.faces[name] for name in further))
        places = {path: place for place, path in enumerate(paths)}
        pairs = torch.tensor([places[reader.faces[name]] for name in named])
        known = f"{images.digest} {named}"
        return replace(
            images,
            digest=hashlib.sha256(known.encode()).hexdigest(),
            paths=paths,
            classes=torch.cat([images.classes, people]),
            supers=torch.cat([images.supers, torch.ones_like(people)]),
            pairs=pairs.view(-1, 2),
        )


def person_of(name: str) -> str:
    """Return the person of an image, such as "Tony_Blair" of "Tony_Blair_0144"."""
    return name.rpartition("_")[0]

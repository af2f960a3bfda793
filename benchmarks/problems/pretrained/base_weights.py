"""Base weights: what a network starts from before its own training.

They lie in a folder `weights` in the data root or beside it. A user puts files there;
those of torchvision are downloaded to the one in the data root.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from torch import nn

from benchmarks.data.files.download import download, wrong_checksum
from benchmarks.problems.pretrained.weight_files import (
    SUFFIXES,
    assign,
    pretrained_of,
    read_tensors,
)
from metricopt.errors import ConfigError, DataError

Source = Literal["random", "torchvision", "file"]


@dataclass(frozen=True)
class BaseWeights:
    """The weights a network starts from.

    Attributes:
        source: "random" for none; "torchvision" for those it was trained with on
            ImageNet; "file" for a file of the user.
        file: name of the file in the folder `weights`, or its path; safetensors, or a
            checkpoint of torch that holds tensors by name.
        sha256: checksum of the file: part of a run's identity, where a name says
            little.

    Raises:
        ConfigError: if a file is named without its checksum, or for another source.
    """

    source: Source = "random"
    file: str | None = None
    sha256: str | None = None

    def __post_init__(self) -> None:
        if self.source != "file":
            if self.file or self.sha256:
                raise ConfigError(
                    "a file and its sha256 belong to the source 'file', got the "
                    f"source {self.source!r}"
                )
            return
        if not self.file or not self.file.endswith(SUFFIXES):
            raise ConfigError(
                f"expected the name of a file ending in {' or '.join(SUFFIXES)}, "
                f"got {self.file!r}"
            )
        if not re.fullmatch("[0-9a-f]{64}", self.sha256 or ""):
            raise ConfigError(
                f"{self.file} needs its sha256, 64 hexadecimal digits as `sha256sum` "
                f"prints them, got {self.sha256!r}"
            )


def load_base(
    network: nn.Module,
    settings: BaseWeights,
    root: Path,
    *,
    offline: bool = False,
) -> str | None:
    """Give a network its base weights; what was added stays unless the file has it.

    Args:
        network: changed in place; its types and device stay.
        settings: which weights.
        root: the data root.
        offline: never download.

    Returns:
        The sha256 of the file, for the record; None if the weights stay random.

    Raises:
        ConfigError: if torchvision offers no weights for this network.
        DataError: if the file is missing, another one than expected, holds more than
            tensors, or does not fit the network; the network is unchanged then.
    """
    wanted = _wanted(network, settings)
    if wanted is None:
        return None
    path = _found(wanted, root)
    if path is None:
        path = _fetched(wanted, root, offline)
    content = _checked(path, wanted.sha256)
    assign(network, read_tensors(path, content), path.name)
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class _Wanted:
    """A file of weights: its name, the start of its checksum, where it comes from."""

    name: str
    sha256: str
    url: str | None = None


def _wanted(network: nn.Module, settings: BaseWeights) -> _Wanted | None:
    if settings.source == "random":
        return None
    if settings.source == "file":
        return _Wanted(settings.file, settings.sha256)
    offered = pretrained_of(network)
    if offered is None:
        raise ConfigError(
            "torchvision offers no weights for this network; expected the source "
            "'random' or 'file'"
        )
    # Not above: it takes seconds to import.
    from torchvision.models import get_weight

    url = get_weight(offered.name).url
    name = Path(urlsplit(url).path).name
    # As in resnet50-0676ba61.pth: torchvision's names end in the start of the checksum.
    return _Wanted(name, Path(name).stem.rpartition("-")[2], url)


def _found(wanted: _Wanted, root: Path) -> Path | None:
    folders = (root / "weights", root.parent / "weights")
    paths = (folder / wanted.name for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _checked(path: Path, sha256: str) -> bytes:
    """Return the content of a file, which is read into memory if it is the expected."""
    try:
        wrong = wrong_checksum(path, "sha256", sha256)
        if wrong is None:
            return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    raise DataError(f"{path} is not the expected file: {wrong}; replace it")


def _fetched(wanted: _Wanted, root: Path, offline: bool) -> Path:
    target = root / "weights" / wanted.name
    if wanted.url is None:
        raise DataError(f"the base weights {target} are missing; put the file there")
    if offline:
        raise DataError(
            f"the base weights {target} are missing, and downloads are forbidden; put "
            f"{wanted.url} there"
        )
    return download([wanted.url], target, sha256=wanted.sha256)

"""Base weights: what a network starts from before its own training.

They lie in a folder `weights` in the data root or beside it. A user puts files there;
published ones are downloaded to the one in the data root.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import torch
from safetensors.torch import load as read_safetensors
from torch import Tensor, nn

from baselines.training.checkpoint import torch_content
from benchmarks.data.files.download import download, wrong_checksum
from benchmarks.data.files.readers import named
from benchmarks.networks.contract import Pretrained
from metricopt.errors import ConfigError, DataError

Source = Literal["random", "torchvision", "published", "file"]
OFFERED: tuple[Source, ...] = ("torchvision", "published")
"""Sources whose weights are downloaded."""
SUFFIXES = (".safetensors", ".pth", ".pt")
"""Endings of the formats that can be read."""
COUNTER = ".num_batches_tracked"


@dataclass(frozen=True)
class BaseWeights:
    """The weights a network starts from.

    Attributes:
        source: "random" for none; "torchvision" for those it was trained with on
            ImageNet; "published" for those that the network names; "file" for a file of
            the user.
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


SQUEEZENET = BaseWeights(
    "file",
    "squeezenet1_1.safetensors",
    "1fe8e164fc591d1e6445b4656eb4c55fa48d5f23ce05564d5f0c2404d4590b68",
)
"""SqueezeNet 1.1 of torchvision for ImageNet, rounded to half precision."""


def load_base(
    network: nn.Module, settings: BaseWeights, root: Path, *, offline: bool = False
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
        ConfigError: if there are no such weights for this network.
        DataError: if the file is missing, another one than expected, holds more than
            tensors, or does not fit the network; the network is unchanged then.
    """
    if settings.source == "random":
        return None
    name, sha256, url = settings.file or "", settings.sha256 or "", ""
    if settings.source in OFFERED:
        name, sha256, url = _offered(network, settings.source)
    path, content = published(name, sha256, url, root, offline=offline)
    offered, state = pretrained_of(network), read_tensors(path, content)
    assign(network, offered.renamed(state) if offered else state, path.name)
    return hashlib.sha256(content).hexdigest()


def published(
    name: str, sha256: str, url: str, root: Path, *, offline: bool = False
) -> tuple[Path, bytes]:
    """Return the path and the content of a file in a folder `weights`.

    Args:
        name: of the file.
        sha256: its checksum, or the first digits.
        url: where it is downloaded if it is missing; empty for nowhere.
        root: the data root.
        offline: never download.

    Raises:
        DataError: if it is missing, or another one than expected.
    """
    paths = (folder / "weights" / name for folder in (root, root.parent))
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        path = _fetched(root / "weights" / name, sha256, url, offline)
    return path, _checked(path, sha256)


def _offered(network: nn.Module, source: Source) -> tuple[str, str, str]:
    """Return name, checksum and address of what a source offers for a network."""
    offered = pretrained_of(network)
    if offered is None or bool(offered.url) != (source == "published"):
        raise ConfigError(
            f"there are no weights of the source {source!r} for this network; expected "
            "'random' or 'file'"
        )
    if offered.url:
        return offered.name, offered.sha256, offered.url
    # Not above: it takes seconds to import.
    from torchvision.models import get_weight

    url = get_weight(offered.name).url
    name = Path(urlsplit(url).path).name
    # As in resnet50-0676ba61.pth: their names end in the start of the checksum.
    return name, Path(name).stem.rpartition("-")[2], url


def _checked(path: Path, sha256: str) -> bytes:
    """Return the content of a file, which is read into memory if it is the expected."""
    try:
        wrong = wrong_checksum(path, "sha256", sha256)
        if wrong is None:
            return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    raise DataError(f"{path} is not the expected file: {wrong}; replace it")


def _fetched(target: Path, sha256: str, url: str, offline: bool) -> Path:
    missing = f"{target} is missing"
    if not url:
        raise DataError(f"{missing}; put the file there")
    if offline:
        raise DataError(f"{missing}, and downloads are forbidden; put {url} there")
    return download([url], target, sha256=sha256)


def read_tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a file by name, on the CPU; none of its code runs.

    Args:
        path: where the file is; the suffix tells the format, and messages name it.
        content: bytes of the file.

    Raises:
        DataError: if it is damaged, or holds anything but tensors by name.
    """
    if path.suffix == ".safetensors":
        try:
            return read_safetensors(content)
        except Exception as error:  # safetensors and torch raise many kinds
            raise DataError(f"{path} is no safetensors file: {error}") from error
    try:
        state = torch_content(content)
    except DataError as error:
        raise DataError(
            f"{path} is refused: {error}; save a state_dict, or safetensors"
        ) from error
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor)
        for name, value in state.items()
    ):
        raise DataError(
            f"{path} must hold tensors by name, as a state_dict does, got "
            f"{type(state).__name__} of other things"
        )
    return state


def assign(network: nn.Module, state: dict[str, Tensor], file: str) -> None:
    """Copy a state into a network; it may lack what was added, nothing else.

    Args:
        network: changed in place, if everything fits; see `Pretrained`.
        state: tensors by name; what has no counterpart in the network is left out.
        file: what the message calls the state.

    Raises:
        DataError: if names, shapes or types differ, or a number is not finite; the
            message tells the first of each kind.
    """
    own, offered = network.state_dict(), pretrained_of(network)
    left_out = _inside(offered.left_out if offered else ())
    added = _inside(offered.added if offered else ())
    given = {
        name: tensor
        for name, tensor in state.items()
        if not name.startswith(left_out)
        # Frozen batch norm counts no mini-batches.
        and (name in own or not name.endswith(COUNTER))
    }
    # Old weights lack the counters, which nothing uses.
    needed = {n for n in own if not n.startswith(added) and not n.endswith(COUNTER)}
    _check(own, given, needed, file)
    network.load_state_dict(given, strict=False)


def restore(network: nn.Module, state: dict[str, Tensor], file: str) -> None:
    """Copy into a network exactly what such a network was kept as.

    Args:
        network: changed in place, if everything fits.
        state: tensors by name.
        file: what the message calls the state.

    Raises:
        DataError: see `assign`.
    """
    own = network.state_dict()
    _check(own, state, own.keys(), file)
    network.load_state_dict(state)


def pretrained_of(network: nn.Module) -> Pretrained | None:
    """Return the published weights of a network; None if there are none."""
    found: Pretrained | None = getattr(network, "pretrained", None)
    return found


def _check(
    own: Mapping[str, Tensor],
    given: Mapping[str, Tensor],
    needed: Collection[str],
    file: str,
) -> None:
    """Check that a state fits a network.

    Args:
        own: the network's state.
        given: the other state.
        needed: names it must hold.
        file: what the message calls it.
    """
    both = own.keys() & given.keys()
    alike = {name for name in both if own[name].shape == given[name].shape}
    usable = {name for name in alike if _is_plain(given[name], own[name])}
    problems = {
        "missing": set(needed) - given.keys(),
        "unknown": given.keys() - own.keys(),
        "of another shape": {
            f"{n} {tuple(given[n].shape)} for {tuple(own[n].shape)}"
            for n in both - alike
        },
        "of another type": {
            f"{n} {given[n].dtype} for {own[n].dtype}" for n in alike - usable
        },
        "not finite": {
            n for n in usable if not bool(given[n].to(own[n].dtype).isfinite().all())
        },
    }
    told = [
        f"{len(n)} {kind} ({named(sorted(n))})" for kind, n in problems.items() if n
    ]
    if told:
        raise DataError(
            f"{file} does not fit the network: expected its {len(own)} tensors by "
            f"name, got {'; '.join(told)}"
        )


def _is_plain(given: Tensor, own: Tensor) -> bool:
    """Return whether a tensor can be copied to another without a loss of meaning."""
    kinds = {each.is_floating_point() - each.is_complex() for each in (given, own)}
    dense = given.layout is torch.strided and not (given.is_quantized or given.is_meta)
    # A file of half precision may hold its counters so, too.
    return dense and (len(kinds) == 1 or own.ndim == 0)


def _inside(modules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in modules)

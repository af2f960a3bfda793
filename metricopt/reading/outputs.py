"""Network outputs, one tensor or several, and the targets they are compared with."""

import weakref
from collections.abc import (
    Callable,
    Hashable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import fields, is_dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeGuard, TypeVar

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError

Outputs = Tensor | tuple[Tensor, ...]
"""What a network returns; every tensor of a tuple has the examples in the same axis."""

Reads = Literal[
    "scores",
    "labels",
    "values",
    "amounts",
    "embeddings",
    "detections",
    "poses",
    "spans",
    "sentences",
]
"""What outputs mean: scores of classes of which one is right, logits of labels that are
decided one by one, predicted values or amounts, embeddings, regions of a detector, heat
maps of joints, scores of where an answer begins and ends, or candidates of pieces."""
VALUES: tuple[Literal["values"], Literal["amounts"]] = ("values", "amounts")
"""Predicted numbers, of which amounts stay positive."""
STRUCTURED: tuple[Reads, ...] = ("detections", "poses", "spans", "sentences")
"""Outputs that only a metric of their own kind reads, with targets of that kind."""

Targets = Tensor | Sequence[Any]
"""One target for each example: a tensor [N, ...], or a sequence of any N objects."""

FAR = 3
"""Half distances of quartiles from 0 to a median that is far from it."""
LOOKED_AT = 2**20
"""Numbers of targets that tell how far apart they are."""


def _half_range(values: Tensor) -> Tensor:
    """Return half of the distance between the quartiles of each column, [C]."""
    ordered, count = values.sort(0).values, len(values)
    # As numbers: they may be whole, and too far apart for half precision.
    upper, lower = (ordered[each * count // 4].double() for each in (3, 1))
    return (upper - lower) / 2


def logarithms_of(amounts: Tensor) -> Tensor:
    """Return logarithms of N amounts [N, ...], float64; 0 counts as their mean."""
    wide = amounts.double()
    mean = wide.mean(0)
    # Where all are 0, or one is missing, there is no mean to speak of.
    return wide.where(wide > 0, mean.where(mean > 0, 1.0)).log()


class Standard(NamedTuple):
    """Where predicted values are scaled about, and the unit in which they are shifted.

    Attributes:
        centre: what scales leave where it is, C numbers: the median of every output,
            or 0 where outputs spread that far, as amounts of any size do.
        unit: half of the distance between the quartiles of the targets of an output, C
            numbers; 1 where both quartiles are the same. Not of the outputs, since
            predictions may hardly differ.
        logarithms: whether both are those of logarithms, which then are scaled and
            shifted: values are amounts, and stay amounts.
    """

    centre: tuple[float, ...]
    unit: tuple[float, ...]
    logarithms: bool = False

    @classmethod
    def of(
        cls, outputs: Tensor, targets: Tensor, axis: int = 1, logarithms: bool = False
    ) -> "Standard":
        """Return the standard of predicted values [n, C, ...] and of targets [N, ...].

        The C outputs lie along an axis, and so do their targets, if they have it.
        """
        targets = targets[:: 1 + targets.numel() // LOOKED_AT]
        width, pair = outputs.shape[axis], [outputs, targets]
        if targets.ndim == outputs.ndim:
            pair = [part.movedim(axis, -1) for part in pair]
        outputs, targets = (part.reshape(-1, width) for part in pair)
        if logarithms:
            outputs, targets = logarithms_of(outputs), logarithms_of(targets)
        unit = _half_range(targets)
        unit = unit.where((unit > 0) & unit.isfinite(), torch.ones_like(unit))
        centre = outputs.double().median(0).values.nan_to_num(0.0, 0.0, 0.0)
        if not logarithms:
            centre = centre.where(centre.abs() > FAR * _half_range(outputs), 0.0)
        return cls(tuple(centre.tolist()), tuple(unit.tolist()), logarithms)

    @classmethod
    def plain(cls, outputs: int, *, logarithms: bool = False) -> "Standard":
        """Return the standard of C outputs of which nothing is known."""
        return cls((0.0,) * outputs, (1.0,) * outputs, logarithms)

    @property
    def is_plain(self) -> bool:
        """Whether scales are about 0, and offsets as they are."""
        return not any(self.centre) and set(self.unit) == {1.0}

    def seen(self, outputs: Tensor) -> Tensor:
        """Return what is scaled and shifted: outputs, or their logarithms."""
        return logarithms_of(outputs) if self.logarithms else outputs

    def affine(
        self, offsets: Tensor, scales: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return what is added and what multiplies before, about 0, float64, [C] each.

        Offsets are in units, and outputs scaled about the centre.
        """
        centre, unit = (
            offsets.new_tensor(each, dtype=torch.float64)
            for each in (self.centre, self.unit)
        )
        moved = offsets.double() * unit
        if scales is None:
            return moved, None
        scales = scales.double()
        return moved + centre * (1 - scales), scales

    def describe(self) -> dict[str, str]:
        """Return what it consists of as texts, by name."""
        found = {"logarithms": "yes"} if self.logarithms else {}
        if not self.is_plain:
            for name, values in (("centre", self.centre), ("unit", self.unit)):
                found[name] = " ".join(f"{value:.9g}" for value in values)
        return found

    @classmethod
    def described(cls, texts: Mapping[str, str]) -> "Standard | None":
        """Return the standard of texts by name; None where they tell of none.

        Raises:
            ValueError: if they are no numbers.
        """
        if not all(name in texts for name in ("centre", "unit")):
            return None
        centre, unit = (
            tuple(map(float, texts[name].split())) for name in ("centre", "unit")
        )
        return cls(centre, unit, "logarithms" in texts)


UNIT = 1e-3
"""How far the length of an embedding, or the sum of probabilities, may be from 1."""
ROUNDED = 0.05
"""How far that sum may be from 1 where it is said that they are probabilities."""
BEYOND = 1e-6
"""How far a probability may be outside [0, 1], by rounding."""
LOGITS = ("logits", "out")
"""Names of the field that counts: of Hugging Face, of torchvision's segmentation."""


def logits_of(returned: Any) -> Outputs:
    """Return the outputs in what a network returns.

    That is a tensor, several in a tuple, or a dict, dataclass, tuple or list with the
    tensor in a field named in `LOGITS`, or in the only field with a tensor.

    Raises:
        ConfigError: if there are other fields, and none is named so.
    """
    if isinstance(returned, Tensor):
        return returned
    parts = _fields(returned)
    name = _logits_name(parts)
    if name is not None:
        found: Tensor = parts[name]
        return found
    kinds = [type(part).__name__ for part in parts.values()]
    tensors = all(isinstance(part, Tensor) for part in parts.values())
    if isinstance(returned, tuple) and parts and tensors:
        return tuple(returned)
    named = [f"{key}: {kind}" for key, kind in zip(parts, kinds, strict=True)]
    listed = kinds if isinstance(returned, tuple | list) else named
    raise ConfigError(
        "the network must return one tensor, or a tuple of tensors, got "
        f"{type(returned).__name__} of ({', '.join(listed)}): wrap it in a module that "
        "returns the tensor that counts, or names it 'logits'"
    )


def with_logits(returned: Any, logits: Tensor) -> Any:
    """Return what a network returned with other logits; see `logits_of`.

    A dict, list or dataclass is changed in place: it was made by this call.
    """
    if isinstance(returned, Tensor):
        return logits
    name: Any = _logits_name(_fields(returned))
    if isinstance(returned, tuple):
        if hasattr(returned, "_fields"):
            return type(returned)(**(_fields(returned) | {name: logits}))
        return tuple(logits if at == name else part for at, part in enumerate(returned))
    if isinstance(returned, Mapping) and not isinstance(returned, MutableMapping):
        raise ConfigError(
            "the network must return a dict that can be changed, got "
            f"{type(returned).__name__}: return dict(...) of it"
        )
    if isinstance(returned, MutableMapping | list):
        returned[name] = logits
    if isinstance(name, str) and isinstance(getattr(returned, name, None), Tensor):
        object.__setattr__(returned, name, logits)
    return returned


def _fields(returned: Any) -> dict[Any, Any]:
    """Return the parts of what a network returns, by name or place."""
    if isinstance(returned, Mapping):
        return dict(returned)
    if hasattr(returned, "_fields"):
        return dict(zip(returned._fields, returned, strict=True))
    if isinstance(returned, tuple | list):
        return dict(enumerate(returned))
    if is_dataclass(returned):
        return {field.name: getattr(returned, field.name) for field in fields(returned)}
    return dict(getattr(returned, "__dict__", {}))


def _logits_name(parts: Mapping[Any, Any]) -> Any:
    """Return the name of the part that holds the logits; None if there is none."""
    tensors = [name for name, part in parts.items() if isinstance(part, Tensor)]
    named = [name for name in LOGITS if name in tensors]
    return next(iter(named or tensors[: len(tensors) == 1]), None)


def leading(outputs: Outputs) -> Tensor:
    """Return the first tensor of outputs, which gives their number and device."""
    return outputs if isinstance(outputs, Tensor) else outputs[0]


def each(function: Callable[[Tensor], Tensor], outputs: Outputs) -> Outputs:
    """Return outputs with a function applied to every tensor of them."""
    if isinstance(outputs, Tensor):
        return function(outputs)
    return tuple(map(function, outputs))


def parts_of(outputs: Outputs) -> tuple[Tensor, ...]:
    """Return the tensors of outputs."""
    return (outputs,) if isinstance(outputs, Tensor) else outputs


def joined(parts: Sequence[Outputs], axis: int) -> Outputs:
    """Return outputs joined along an axis, tensor by tensor."""
    if isinstance(parts[0], Tensor):
        return torch.cat(parts, axis)  # type: ignore[arg-type]
    return tuple(torch.cat(tensors, axis) for tensors in zip(*parts, strict=True))


def rows(outputs: Outputs) -> Iterator[Outputs]:
    """Yield the outputs of every row, for outputs [B, ...] of B rows."""
    yield from outputs if isinstance(outputs, Tensor) else zip(*outputs, strict=True)


def class_logits(outputs: Tensor) -> Tensor:
    """Return logits of max(C, 2) classes, of outputs [..., C].

    One logit is that of class 1 against class 0.
    """
    if outputs.shape[-1] > 1:
        return outputs
    return torch.cat([torch.zeros_like(outputs), outputs], -1)


def of_examples(wrong: Tensor, examples: str = "examples") -> str:
    """Return which examples are wrong, in words: how many, and the first one.

    Args:
        wrong: bool, shape [N], of which one at least is true.
        examples: what they are called.
    """
    first = int(wrong.nonzero()[0])
    return f"{int(wrong.sum())} of {len(wrong)} {examples}, first for example {first}"


def range_of(values: Tensor) -> str:
    """Return from where to where values go, in words."""
    low, high = values.min().item() + 0.0, values.max().item() + 0.0  # -0.0 is 0
    return f"{low:g} to {high:g}"


def require_finite(name: str, values: Tensor) -> None:
    """Raise DataError for NaN or infinity in values [N, ...]."""
    wrong = ~values.isfinite()[:, None].flatten(1).all(1)
    if bool(wrong.any()):
        raise DataError(
            f"{name} must be finite numbers, got NaN or infinity for "
            f"{of_examples(wrong)}"
        )


def are_labels(targets: Targets) -> TypeGuard[Tensor]:
    """Return whether targets are one class label for each example, a tensor [N]."""
    if not isinstance(targets, Tensor) or targets.is_floating_point():
        return False
    return targets.ndim == 1


def are_embeddings(outputs: Tensor) -> bool:
    """Return whether outputs [..., E] are embeddings: E > 1 and all of unit length.

    Probabilities, which may be 0 or 1, are none.
    """
    if outputs.shape[-1] == 1:
        return False
    unit = ((outputs.norm(dim=-1) - 1).abs() < UNIT).all()
    shares = (outputs >= 0).all() & ((outputs.sum(-1) - 1).abs() < UNIT).all()
    return bool(unit & ~shares)


def are_within_unit(outputs: Tensor) -> bool:
    """Return whether all outputs are in [0, 1] as probabilities, but for rounding."""
    return bool(((outputs >= -BEYOND) & (outputs <= 1 + BEYOND)).all())


def are_shares(outputs: Tensor, axis: int, within: float = UNIT) -> bool:
    """Return whether outputs are in [0, 1] and sum to 1 along an axis."""
    sums = outputs.sum(axis, dtype=torch.float64)
    return are_within_unit(outputs) and bool(((sums - 1).abs() < within).all())


def are_logarithms(outputs: Tensor, axis: int) -> bool:
    """Return whether outputs are logarithms of numbers that sum to 1 along an axis."""
    if not bool((outputs <= 0).all()):
        return False
    return bool(outputs.logsumexp(axis).abs().amax() < UNIT)


def targets_at(targets: Targets, index: Tensor) -> Targets:
    """Return targets at indices [n] or [B, n]: a tensor, or a list nested like them."""
    if isinstance(targets, Tensor):
        return targets[index.to(targets.device)]

    def chosen(places: Any) -> Any:
        if isinstance(places, list):
            return [chosen(place) for place in places]
        return targets[places]

    found: list[Any] = chosen(index.tolist())
    return found


T = TypeVar("T")


class Remembered(Generic[T]):
    """What was found last of two tensors, for the next metric that asks for the same.

    It holds neither tensor: one that nobody else needs is freed. Found is what is asked
    for as long as both tensors are the same objects, and torch has not changed them in
    place; changes through `.data` or a shared numpy array are not seen.
    """

    def __init__(self) -> None:
        self._kept: tuple[_Mark, _Mark, Hashable, T] | None = None

    def find(self, outputs: Tensor, targets: Tensor, how: Hashable = None) -> T | None:
        """Return what was found if it is of these tensors as they are now."""
        if self._kept is None:
            return None
        seen, labelled, asked, found = self._kept
        fits = seen.fits(outputs) and labelled.fits(targets) and asked == how
        return found if fits else None

    def keep(
        self, outputs: Tensor, targets: Tensor, found: T, how: Hashable = None
    ) -> None:
        """Remember what was found; not of tensors that do not count their changes."""
        if outputs.is_inference() or targets.is_inference():
            return
        self._kept = _Mark(outputs), _Mark(targets), how, found


class _Mark:
    """A tensor as it was: the object, without holding it, and its version."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = weakref.ref(tensor)
        self._version = tensor._version

    def fits(self, tensor: Tensor) -> bool:
        """Return whether this is the tensor, unchanged."""
        return self._tensor() is tensor and self._version == tensor._version

"""What is refused of the examples of an episode before steps are taken on them."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metricopt.errors import (
    ConfigError,
    DataError,
    LossError,
    MetricOptError,
    ShapeError,
    described,
    said,
)

Examples = tuple[Tensor, Tensor]
"""Inputs and targets."""
Loss = Callable[[Tensor, Tensor], Tensor]
"""From outputs and targets of the examples of one episode to a scalar."""


def check_pair(inputs: Tensor, targets: Tensor) -> None:
    """Check the support of one episode, without its values.

    Raises:
        ShapeError: if inputs and targets are not as many, or none.
    """
    counts = [
        len(each) if isinstance(each, Tensor) and each.ndim else 0
        for each in (inputs, targets)
    ]
    if counts[0] != counts[1] or not counts[0]:
        raise ShapeError(
            "the support needs inputs and targets [n, ...] with n >= 1, got "
            f"{described(inputs)} and {described(targets)}"
        )


def tried_outputs(predict: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """Return the outputs of a network of which nothing is known.

    Raises:
        ConfigError: if the network raises.
    """
    try:
        return predict(inputs)
    except MetricOptError:
        raise
    except Exception as error:  # the network is the user's
        raise ConfigError(
            f"the network must take {described(inputs)}, but raised {said(error)}"
        ) from error


def tried_loss(
    predict: Callable[[Tensor], Tensor], loss: Loss, examples: Examples
) -> tuple[Tensor, Tensor]:
    """Return outputs and loss of examples where nothing is known of either.

    Works inside of `torch.func`.

    Raises:
        ConfigError: if the network raises; a LossError if the loss does.
        ShapeError: if targets that are numbers do not fit the outputs, or the loss is
            no scalar.
        DataError: if a target is no class, or the loss is not finite.
    """
    inputs, targets = examples
    outputs = tried_outputs(predict, inputs)
    check_targets(targets, outputs.shape[1:])
    try:
        found = loss(outputs, targets)
    except MetricOptError:
        raise
    except Exception as error:  # the loss is the user's
        raise LossError(
            f"the loss must take outputs {described(outputs)} and targets "
            f"{described(targets)}, but raised {said(error)}"
        ) from error
    if not isinstance(found, Tensor) or found.ndim:
        raise ShapeError(f"the loss must be a scalar tensor, got {described(found)}")
    values = torch.func.debug_unwrap(found)
    if not bool(values.isfinite().all()):
        wrong = values[~values.isfinite()].flatten()[0]
        raise DataError(
            f"the loss must be finite before any step, got {wrong.item():g}; look at "
            "the inputs and targets of the support"
        )
    return outputs, found


def are_classes(targets: Tensor) -> bool:
    """Return whether the targets of one episode are classes, shape [n]."""
    return targets.ndim == 1 and not targets.is_floating_point()


def check_targets(targets: Tensor, outputs: Sequence[int]) -> None:
    """Check the targets of one episode, [n, ...], against the outputs of one example.

    Raises:
        ShapeError: if they are numbers that do not fit the outputs.
        DataError: if one is no class.
    """
    if are_classes(targets):
        _check_classes(targets, outputs)
        return
    own, other = tuple(outputs), tuple(targets.shape[1:])
    if own != other and [n for n in own if n > 1] == [n for n in other if n > 1]:
        # [n] against [n, 1] would be compared all with all.
        expected = ", ".join(map(str, ("n", *own)))
        raise ShapeError(
            f"targets must have the shape of the outputs [{expected}], got "
            f"{list(targets.shape)}"
        )


def _check_classes(targets: Tensor, outputs: Sequence[int]) -> None:
    if targets.dtype != torch.int64:
        raise DataError(
            f"targets that are classes must be int64, got {described(targets)}: use "
            "targets.long()"
        )
    # The values alone are read, never what a transform makes of them.
    ends = torch.func.debug_unwrap(targets).aminmax()
    low, high = (int(end) for end in ends)
    most = max(outputs[0] if len(outputs) == 1 else 0, 2) - 1
    if low < 0 or high > most:
        raise DataError(
            f"targets must be classes in [0, {most}] for outputs [n, "
            f"{', '.join(map(str, outputs))}], got {low} to {high}"
        )

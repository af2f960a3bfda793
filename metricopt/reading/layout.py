"""Where the classes are in outputs for every pixel or token, and what label is none."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from metricopt.errors import ConfigError

Layout = Literal["rows", "channels", "tokens"]
"""Where the classes of an example are: [N, C], [N, C, ...] or [N, ..., C]."""
IGNORED = -100
"""Label that torch's losses and token classifiers leave out by default."""


def layout_of(
    outputs: Tensor, targets: Tensor, loss: object, given: Layout | None
) -> Layout | None:
    """Return where the classes of outputs [n, ...] are; None if targets do not fit.

    Raises:
        ConfigError: if they may be in two places, and neither the loss nor the user
            says in which, or they are not where the user says.
    """
    shape, each = tuple(outputs.shape[1:]), tuple(targets.shape[1:])
    if len(shape) == 1:
        fits: Sequence[tuple[int, ...]] = ((), shape)
        return "rows" if each in fits else None
    fit: dict[Layout, bool] = {
        "channels": each in (shape[1:], shape),
        "tokens": each == shape[:-1],
    }
    if given is not None and any(fit.values()) and not fit.get(given):
        raise ConfigError(
            f"layout={given!r} does not fit outputs {['n', *shape]} with targets "
            f"{['n', *each]}: leave it out"
        )
    if given is not None and fit.get(given):
        return given
    if all(fit.values()):
        return _settled(outputs, targets[: len(outputs)], loss)
    return next((layout for layout, fits in fit.items() if fits), None)


def ignored_label(loss: Any) -> int:
    """Return the label that a loss leaves out, of torch's default if it names none."""
    given = getattr(loss, "keywords", {}).get("ignore_index")  # of a `partial`
    found: int = getattr(loss, "ignore_index", IGNORED) if given is None else given
    return found


def _settled(outputs: Tensor, targets: Tensor, loss: Any) -> Layout:
    """Return which of two layouts a loss takes outputs [n, C, ..., C] to have.

    It does not care in which order the places of an example come, if their targets come
    in the same. In the other layout this exchanges classes.

    Raises:
        ConfigError: if it cares in both layouts, or in none.
    """
    if not callable(loss) or outputs.shape[1] == 1:
        return "channels"  # as torch's own losses have it

    def value(places: int | None) -> Tensor:
        moved = outputs if places is None else outputs.roll(1, places)
        found = loss(moved, targets if places is None else targets.roll(1, 1))
        return torch.as_tensor(found).detach()

    def is_same(axis: int) -> bool:
        try:
            return torch.allclose(value(axis), value(None), rtol=1e-4)
        except Exception:  # noqa: BLE001 - of a user, in a layout it does not take
            return False

    channels, tokens = is_same(2), is_same(1)
    if channels == tokens:
        raise ConfigError(
            f"outputs {list(outputs.shape)} with targets {list(targets.shape)} may "
            "hold the classes second or last, and the loss does not tell: say which by "
            "FinetuneOptions(layout='channels') or FinetuneOptions(layout='tokens')"
        )
    return "channels" if channels else "tokens"


def void_doubt(targets: Tensor, classes: int) -> str:
    """Return a sentence if all targets but those of one number are labels."""
    others = targets[(targets < 0) | (targets >= classes)].unique()
    if len(others) != 1:
        return ""
    (void,) = others.tolist()
    return (
        f" If {void} marks what is left out, let the loss say so: loss.ignore_index = "
        f"{void}."
    )

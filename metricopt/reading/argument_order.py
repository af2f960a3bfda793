"""Which argument of a plain function is which, by the names of its parameters."""

import inspect
import re
from collections.abc import Callable
from typing import Literal

from torch import nn

from metricopt.errors import ConfigError
from metricopt.reading.taking import PLACED

Order = Literal["outputs, targets", "targets, outputs"]
OUTPUTS_FIRST: Order = "outputs, targets"
TARGETS_FIRST: Order = "targets, outputs"
WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
TARGETS = re.compile(
    "actuals?|annotations?|expected|gold|gt|labels?|references?|t|targets?|test|"
    "y?true|truth|yt"
)
"""Words in names of parameters that are targets: of scikit-learn, Keras, torchmetrics,
Hugging Face, and by habit."""
OUTPUTS = re.compile(
    "estimated|got|guess(es)?|input|logits?|o|outputs?|y?p|y?hat|y?preds?|"
    "predict(ed|ions?)?|prob(a|s|abilities)?|scores?"
)
"""Words in names of parameters that are outputs, whatever else stands in them."""


def order_of(function: Callable[..., object], name: str) -> Order:
    """Return the order of arguments that the names of parameters tell.

    Raises:
        ConfigError: if it cannot take two arguments, or if one of the names is that of
            the other's place, and the other name says nothing.
    """
    if isinstance(function, nn.Module):
        function = function.forward
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions in C tell nothing
        return OUTPUTS_FIRST
    placed = [each.name for each in parameters if each.kind in PLACED][:2]
    if len(placed) < 2:
        if all(each.kind != inspect.Parameter.VAR_POSITIONAL for each in parameters):
            taken = f"one, {placed[0]!r}" if placed else "none by its place"
            raise ConfigError(
                f"metric {name!r} must take two arguments, outputs and targets, but "
                f"takes {taken}: wrap it in a function of (outputs, targets)"
            )
        return OUTPUTS_FIRST
    first, second = placed
    roles = _role(first), _role(second)
    # A `y` is either: it is the targets where the outputs come second.
    if roles[1] == "outputs" and (roles[0] == "targets" or first == "y"):
        return TARGETS_FIRST
    in_place = roles[0] == "outputs" or roles[1] == "targets"
    if in_place or not any(roles):
        return OUTPUTS_FIRST
    raise ConfigError(
        f"metric {name!r} takes {first!r} and {second!r}, which do not tell whether "
        "targets come first: pass make_metric(..., arguments="
        f"{TARGETS_FIRST!r}) or arguments={OUTPUTS_FIRST!r}"
    )


def names_outputs_first(function: Callable[..., object]) -> bool:
    """Return whether the names of parameters say that outputs come first."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    placed = [_role(each.name) for each in parameters if each.kind in PLACED][:2]
    return placed in (["outputs", "targets"], ["outputs", ""])


def _role(name: str) -> str:
    """Return what the name of a parameter says it is; empty if it says nothing."""
    words = [word.lower() for word in WORD.findall(name)]
    if any(map(OUTPUTS.fullmatch, words)):
        return "outputs"
    return "targets" if any(map(TARGETS.fullmatch, words)) else ""

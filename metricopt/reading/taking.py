"""Which columns a metric takes: those that its parameters are named like."""

import inspect
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from metricopt.errors import ConfigError

PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Takes:
    """What a function takes beside outputs and targets.

    Attributes:
        names: parameters that may be passed by name.
        needed: those of them without a default.
        every: whether it takes any name.
        placed: names that stand for outputs and targets.
    """

    names: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    every: bool = False
    placed: tuple[str, ...] = ()

    def of(self, columns: Collection[str], metric: str) -> tuple[str, ...]:
        """Return the names of the columns that are passed.

        Raises:
            ConfigError: if what is needed is no column.
        """
        lacking = [name for name in self.needed if name not in columns]
        if lacking:
            listed, first = ", ".join(map(repr, lacking)), lacking[0]
            raise ConfigError(
                f"metric {metric!r} also needs {listed}, which is no column of "
                f"observe: give it beside the labels, observe=(inputs, targets, "
                f"{{{first!r}: values}}), or in a functools.partial"
            )
        every = [name for name in columns if self.every and name not in self.placed]
        return tuple(name for name in columns if name in (*self.names, *every))


NOTHING = Takes()


def takes_of(function: Any, *, only: Collection[str] = ()) -> Takes:
    """Return what a function takes beside its first two arguments.

    What a `functools.partial` gives already is not taken. Only the parameters in `only`
    count if there are any.
    """
    call = function.forward if isinstance(function, nn.Module) else function
    try:
        parameters = [*inspect.signature(call).parameters.values()]
    except (TypeError, ValueError):  # some functions in C tell nothing
        return NOTHING
    first = [each for each in parameters if each.kind in PLACED][:2]
    given = function.keywords if isinstance(function, partial) else {}
    rest = [
        each
        for each in parameters
        if each.kind in NAMED
        and each not in first
        and each.name not in given
        and (not only or each.name in only)
    ]
    return Takes(
        names=tuple(each.name for each in rest),
        needed=tuple(each.name for each in rest if each.default is each.empty),
        every=not only and any(each.kind is each.VAR_KEYWORD for each in parameters),
        placed=tuple(each.name for each in first),
    )

"""Modules whose outputs are changed however they are called, until that is undone.

A hook is bypassed by `module.forward(x)`, and by code that torch compiled before. So
the module gets a class of its own, whose `forward` changes the outputs: compiled code
is guarded by the classes of modules.
"""

import copy
import functools
import types
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, NoReturn

from torch import Tensor, nn

from metricopt.errors import ConfigError

Change = Callable[[Any], Any]
"""From the outputs of a module to other outputs."""
LACKING = (
    "this state_dict lacks phi, as it holds the weights of the network alone: "
    "take that of merge(), or write phi with save()"
)


class Changed(nn.Module):
    """A class that is put before the one of a module.

    Attributes:
        plain: the class of the module.
        change: what is done to its outputs.
    """

    plain: ClassVar[type[nn.Module]]
    change: ClassVar[Change]

    def __init_subclass__(cls, **_: object) -> None:
        """Keep what the class of the module does with its subclasses from this one."""

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        """Return a copy that is changed, too."""
        kind = type(self)
        self.__class__ = kind.plain  # type: ignore[assignment]
        try:
            copied: nn.Module = copy.deepcopy(self, memo)
        finally:
            self.__class__ = kind
        copied.__class__ = _class(type(copied), kind.change)
        return copied

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled: the class exists in this process only."""
        raise ConfigError(
            "a network that an adapter is applied to cannot be pickled: pickle "
            "what merge() of the result returns"
        )


def is_alone(output: Tensor, dims: int, channels: int) -> bool:
    """Return whether an output is that of one example without its batch.

    With a batch, it has so many axes, and so many channels second.
    """
    return output.ndim == dims - 1 and output.shape[:1] == (channels,)


def also_of_one(change: Change, dims: int, channels: int) -> Change:
    """Return a change that takes the output of one example without its batch, too.

    See `is_alone`.
    """

    def changed(output: Any) -> Any:
        if isinstance(output, Tensor) and is_alone(output, dims, channels):
            return change(output[None])[0]
        return change(output)

    return changed


def is_changed(network: nn.Module) -> bool:
    """Return whether an adapter is put into a network or a part of it."""
    return any(isinstance(module, Changed) for module in network.modules())


def put_in(
    network: nn.Module, changes: Sequence[tuple[nn.Module, Change]]
) -> Callable[[], None]:
    """Change the outputs of modules of a network, and return what undoes it all.

    Changes of the inner modules come first. The network's state_dict warns that phi is
    not in it.

    Raises:
        ConfigError: if the network is changed already, or a `forward` was replaced.
    """
    if is_changed(network):
        raise ConfigError(
            "another result is applied to this network: call remove() of that one "
            "first, or take the network that it was copied from"
        )
    done: dict[nn.Module, list[Change]] = {}
    for module, change in changes:
        done.setdefault(module, []).append(change)
    done.setdefault(network, [])  # also marks it as changed
    undo = ExitStack()
    try:
        for module, each in done.items():
            _change(module, _chain(each), undo)
    except BaseException:
        undo.close()
        raise
    undo.callback(network.register_state_dict_post_hook(_warn).remove)
    return undo.close


def _change(module: nn.Module, change: Change, undo: ExitStack) -> None:
    if "forward" in vars(module):
        raise ConfigError(
            f"forward of a {type(module).__name__} was replaced on the object, so that "
            "nothing can be applied to it: write a class with this forward"
        )
    kind = type(module)
    module.__class__ = _class(kind, change)
    undo.callback(setattr, module, "__class__", kind)
    # The fast paths of torch's transformers call no module, unless one has a hook.
    undo.callback(module.register_forward_hook(_nothing).remove)


def _class(plain: type[nn.Module], change: Change) -> type[nn.Module]:
    """Return a subclass that changes the outputs, with the name of the class."""
    names = ("__module__", "__qualname__", "__doc__")
    attributes = {name: getattr(plain, name) for name in names}

    @functools.wraps(plain.forward)
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return change(plain.forward(self, *args, **kwargs))

    own = {"plain": plain, "change": staticmethod(change), "forward": forward}
    made: type[nn.Module] = types.new_class(
        plain.__name__,
        (Changed, plain),
        {},
        lambda space: space.update(attributes, **own),
    )
    return made


def _chain(changes: Sequence[Change]) -> Change:
    """Return what does some changes one after the other."""

    def change(outputs: Any) -> Any:
        for each in changes:
            outputs = each(outputs)
        return outputs

    return change


def _nothing(*_: object) -> None:
    return None


def _warn(*_: object) -> None:
    warnings.warn(LACKING, UserWarning, stacklevel=3)

"""The tracer that finds sites in the graph of a network."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from torch import fx, nn

TRACE_ERRORS = (Exception,)
"""What tracing a network with dynamic control flow, or running a bad cut, may raise:
anything, as the forward of a user runs with what is no tensor."""
ONE_TRACE = threading.Lock()
"""Held while a network is traced: fx patches `nn.Module`, and of two traces at once one
would leave its patch there."""


class SiteTracer(fx.Tracer):
    """Traces through the modules that contain one of `targets`, and no others.

    fx patches `nn.Module` for the whole process. What another thread runs meanwhile is
    called as if it had not.

    Args:
        targets: modules that must show up in the graph.
    """

    def __init__(self, targets: Iterable[nn.Module]) -> None:
        super().__init__()
        self._targets = set(targets)
        self._thread = threading.get_ident()

    def trace(
        self,
        root: nn.Module | Callable[..., Any],
        concrete_args: dict[str, Any] | None = None,
    ) -> fx.Graph:
        """Return the graph of a module, while no other thread traces one."""
        modules = [*root.modules()] if isinstance(root, nn.Module) else []
        kept = [(module, dict(vars(module))) for module in modules]
        try:
            with ONE_TRACE:
                return super().trace(root, concrete_args)
        finally:
            # A forward that keeps activations has kept what stands for them.
            for module, attributes in kept:
                _put_back(vars(module), attributes)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether a module contains no target."""
        return not any(
            child in self._targets for child in m.modules() if child is not m
        )

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Record the call of a module, or just make it in another thread."""
        if threading.get_ident() != self._thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(
        self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, fx.Proxy]
    ) -> Any:
        """Record that an attribute is read, or just return it in another thread."""
        if threading.get_ident() != self._thread:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)


def _put_back(held: dict[str, Any], kept: dict[str, Any]) -> None:
    """Make a dict what it was, in small steps: another thread may read it meanwhile."""
    for name in held.keys() - kept.keys():
        del held[name]
    for name, value in kept.items():
        if held.get(name) is not value:
            held[name] = value

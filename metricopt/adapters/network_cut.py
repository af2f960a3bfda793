"""Cut a network at its first adapter site, to compute what precedes it only once.

The network is traced with torch.fx. A node is *free* if it does not depend on phi; the
free part is the prefix, the rest the suffix, and the free values that the suffix reads
cross the cut. Only modules that contain a site are traced through, so the code inside
others need not be traceable. A network that cannot be traced runs whole, with hooks.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, cast

import torch
from torch import Tensor, fx, nn
from torch.fx.node import Node

from metricopt.adapters.applied.changed import Change
from metricopt.adapters.sites import Modulation, Site
from metricopt.errors import ConfigError
from metricopt.reading.inputs import Form, Inputs, call, formed, tensors_of, width

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
        if isinstance(root, _OfTensors):
            # Ours: it keeps the tensors that a forward makes, which the graph reads.
            modules.remove(root)
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


_SHAPE_METHODS = {"size", "dim", "ndimension", "numel"}
_SHAPE_ATTRIBUTES = {"shape", "ndim", "dtype", "device"}


class GraphCut:
    """A network as a prefix that does not depend on phi, and a suffix that does.

    Attributes:
        entries: for every value that crosses the cut, the index of the site whose raw
            output it is, or None.
    """

    def __init__(
        self,
        prefix: fx.GraphModule,
        suffix: fx.GraphModule,
        entries: tuple[int | None, ...],
    ) -> None:
        self.entries = entries
        self._prefix = prefix
        self._suffix = suffix

    def encode(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Return the values that cross the cut, each [N, ...], without gradient."""
        with torch.no_grad():
            # Cloned, as a network may write on its inputs.
            tensors = tuple(map(Tensor.clone, tensors_of(inputs)))
            return cast(tuple[Tensor, ...], self._prefix.forward(tensors))

    def decode(self, values: Sequence[Tensor], modulation: Modulation) -> Any:
        """Return the network outputs, [B * n, ...].

        The values that cross the cut are [B * n, ...] each, sites among them modulated
        already; the sites of the suffix are modulated here.
        """
        return self._suffix.forward(*values, modulation)


class HookedNetwork:
    """The whole network, modulated through hooks: the fallback if it cannot be cut.

    Attributes:
        entries: None for each tensor of the inputs, which belong to no site.
    """

    entries: tuple[int | None, ...]

    def __init__(self, network: nn.Module, sites: Sequence[Site], form: Form) -> None:
        self.entries = (None,) * width(form)
        self._network, self._sites, self._form = network, sites, form

    def encode(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Return the inputs, each [N, ...]."""
        return tensors_of(inputs)

    def decode(self, values: Sequence[Tensor], modulation: Modulation) -> Any:
        """Return the network outputs, [B * n, ...], of inputs [B * n, ...]."""
        changes = site_changes(self._sites, lambda: modulation)
        with ExitStack() as hooks:
            for site, change in zip(self._sites, changes, strict=True):
                # Before hooks of others, which see what a site gives with phi in it.
                hook = site.module.register_forward_hook(_hook(change), prepend=True)
                hooks.callback(hook.remove)
            return call(self._network, formed(self._form, values))


def _hook(change: Change) -> Callable[[nn.Module, Any, Any], Any]:
    return lambda module, inputs, output: change(output)


def site_changes(
    sites: Sequence[Site], modulation: Callable[[], Modulation]
) -> list[Change]:
    """Return what a modulation does to the output of every site.

    It is asked for at every site, so that it may follow a phi that changes.
    """

    def change_at(index: int) -> Change:
        def change(output: Any) -> Tensor:
            if not isinstance(output, Tensor) or output.is_nested:
                kind = "nested " * isinstance(output, Tensor) + type(output).__name__
                name = sites[index].name
                raise ConfigError(f"site {name!r} must give one tensor, got {kind}")
            return modulation().grouped(output, index)

        return change

    return [change_at(index) for index in range(len(sites))]


def cut_network(
    network: nn.Module, sites: Sequence[Site], form: Form
) -> GraphCut | None:
    """Cut a network at its first site; return None if not all show up in its graph."""
    traced = _trace(network, [site.module for site in sites], form)
    if traced is None:
        return None
    root, graph = traced
    index = {site.module: number for number, site in enumerate(sites)}
    site_of = {
        node: index[module] for node, module in _calls(root, graph) if module in index
    }
    if len(set(site_of.values())) < len(sites):
        return None
    return _split(root, graph, site_of)


def in_order(
    network: nn.Module, kind: type[nn.Module], form: Form = None
) -> list[nn.Module]:
    """Return the modules of a kind, the one that runs first at the head.

    Modules are in order of execution if the network can be traced with inputs of this
    form; then, or else, in order of registration.
    """
    candidates = [module for module in network.modules() if isinstance(module, kind)]
    traced = _trace(network, candidates, form)
    called = [] if traced is None else [module for _, module in _calls(*traced)]
    return [module for module in called if isinstance(module, kind)] + candidates


class _OfTensors(nn.Module):
    """The network as a function of its input tensors; other arguments are defaults."""

    def __init__(self, network: nn.Module, form: Form) -> None:
        super().__init__()
        self.network, self._form = network, form

    def forward(self, tensors: tuple[Tensor, ...]) -> Any:
        return call(self.network, formed(self._form, tensors))


def _trace(
    network: nn.Module, targets: Iterable[nn.Module], form: Form
) -> tuple[nn.Module, fx.Graph] | None:
    root = _OfTensors(network, form)
    try:
        return root, SiteTracer(targets).trace(root)
    except TRACE_ERRORS:
        return None


def _calls(root: nn.Module, graph: fx.Graph) -> list[tuple[Node, nn.Module]]:
    return [
        (node, root.get_submodule(str(node.target)))
        for node in graph.nodes
        if node.op == "call_module"
    ]


def _split(
    root: nn.Module, graph: fx.Graph, site_of: dict[Node, int]
) -> GraphCut | None:
    bound = _descendants(graph, site_of)
    output = next(node for node in graph.nodes if node.op == "output")
    if output not in bound:
        return None
    data = _descendants(graph, {n for n in graph.nodes if n.op == "placeholder"})
    data.update(node for node in graph.nodes if node.op == "placeholder")

    def crosses(node: Node) -> bool:
        # Parameters and shapes are read again in the suffix: parameters have no axis
        # of examples, and shapes must be those of the B-fold batch.
        return node in data and node not in bound and not _is_shape(node)

    suffix, crossing = _ancestors([output], stop=crosses)
    entering = [node for node in graph.nodes if node in crossing]
    prefix, _ = _ancestors(entering, stop=lambda node: False)
    return GraphCut(
        _prefix_module(root, graph, prefix, entering),
        _suffix_module(root, graph, suffix, entering, site_of),
        tuple(site_of.get(node) for node in entering),
    )


def _descendants(graph: fx.Graph, sources: Iterable[Node]) -> set[Node]:
    """Return the nodes that depend on a source; sources only if they depend on one."""
    seeds, found = set(sources), set[Node]()
    for node in graph.nodes:
        if any(source in seeds or source in found for source in node.all_input_nodes):
            found.add(node)
    return found


def _ancestors(
    nodes: Iterable[Node], *, stop: Callable[[Node], bool]
) -> tuple[set[Node], set[Node]]:
    """Return the nodes needed for `nodes`, and the nodes where the walk stopped."""
    needed, stopped, pending = set[Node](), set[Node](), list(nodes)
    while pending:
        node = pending.pop()
        if node in needed or node in stopped:
            continue
        if stop(node):
            stopped.add(node)
        else:
            needed.add(node)
            pending.extend(node.all_input_nodes)
    return needed, stopped


def _is_shape(node: Node) -> bool:
    """Return whether a node is a shape, a device, or a number computed from shapes."""
    if node.op == "call_method":
        return node.target in _SHAPE_METHODS
    if node.op != "call_function":
        return False
    if node.target is getattr:
        return node.args[1] in _SHAPE_ATTRIBUTES
    arithmetic = getattr(node.target, "__module__", None) in ("_operator", "math")
    return arithmetic and all(map(_is_shape, node.all_input_nodes))


def _prefix_module(
    root: nn.Module, graph: fx.Graph, nodes: set[Node], crossing: Sequence[Node]
) -> fx.GraphModule:
    prefix, copies = fx.Graph(), dict[Node, Node]()
    for node in graph.nodes:
        if node in nodes:
            copies[node] = prefix.node_copy(node, copies.__getitem__)
    prefix.output(tuple(copies[node] for node in crossing))
    return fx.GraphModule(root, prefix)


def _suffix_module(
    root: nn.Module,
    graph: fx.Graph,
    nodes: set[Node],
    crossing: Sequence[Node],
    site_of: dict[Node, int],
) -> fx.GraphModule:
    suffix, copies = fx.Graph(), dict[Node, Node]()
    for node in crossing:
        copies[node] = suffix.placeholder(f"value_{len(copies)}")
    modulation = suffix.placeholder("modulation")
    for node in graph.nodes:
        if node not in nodes:
            continue
        copy = suffix.node_copy(node, copies.__getitem__)
        if node in site_of:
            copy = suffix.call_method("grouped", (modulation, copy, site_of[node]))
        copies[node] = copy
    return fx.GraphModule(root, suffix)

"""Cut a network at its first adapter site, to compute what precedes it only once.

The network is traced with torch.fx. A node is *free* if it does not depend on phi; the
free part is the prefix, the rest the suffix, and the free values that the suffix reads
cross the cut. Only modules that contain a site are traced through, so the code inside
others need not be traceable. A network that cannot be traced runs whole, with hooks.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, fx, nn
from torch.fx.node import Node
from torch.utils.hooks import RemovableHandle

from metricopt.adapters.modulation import Modulation
from metricopt.adapters.sites import Site
from metricopt.errors import ConfigError

TRACE_ERRORS = (
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
    LookupError,
    AssertionError,
)
"""What tracing a network with dynamic control flow, or running a bad cut, may raise."""

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

    def encode(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the values that cross the cut, each [N, ...], without gradient."""
        with torch.no_grad():
            return cast(tuple[Tensor, ...], self._prefix.forward(inputs))

    def decode(self, values: Sequence[Tensor], modulation: Modulation) -> Any:
        """Return the network outputs, [B * n, ...].

        Args:
            values: crossing values, each [B * n, ...]; sites are modulated already.
            modulation: what to do at the sites of the suffix.
        """
        return self._suffix.forward(*values, modulation)


class HookedNetwork:
    """The whole network, modulated through hooks: the fallback if it cannot be cut.

    Attributes:
        entries: one value, the inputs, which belong to no site.
    """

    entries: tuple[int | None, ...] = (None,)

    def __init__(self, network: nn.Module, sites: Sequence[Site]) -> None:
        self._network = network
        self._sites = sites

    def encode(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the inputs, [N, ...]."""
        return (inputs,)

    def decode(self, values: Sequence[Tensor], modulation: Modulation) -> Any:
        """Return the network outputs, [B * n, ...], of inputs [B * n, ...]."""
        handles = hook_sites(self._sites, lambda: modulation)
        try:
            return self._network(values[0])
        finally:
            for handle in handles:
                handle.remove()


def modulated(modulation: Modulation, hidden: Tensor, site: int) -> Tensor:
    """Return the output of a site, [B * n, ...], modulated row by row."""
    return modulation.grouped(hidden, site)


def hook_sites(
    sites: Sequence[Site], modulation: Callable[[], Modulation]
) -> list[RemovableHandle]:
    """Modulate the sites of a network in place, until the handles are removed.

    Args:
        sites: the sites.
        modulation: called at every site, so that it may follow a phi that changes.
    """

    def hook_at(index: int) -> Callable[[nn.Module, Any, Any], Tensor]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> Tensor:
            if not isinstance(output, Tensor):
                raise ConfigError(
                    f"site {sites[index].name!r} must give one tensor, "
                    f"got {type(output).__name__}"
                )
            return modulated(modulation(), output, index)

        return hook

    return [
        site.module.register_forward_hook(hook_at(index))
        for index, site in enumerate(sites)
    ]


def cut_network(network: nn.Module, sites: Sequence[Site]) -> GraphCut | None:
    """Cut a network at its first site; return None if its graph cannot be traced.

    Args:
        network: the network, in evaluation mode.
        sites: the sites; all their modules must show up in the graph.
    """
    traced = _trace(network, [site.module for site in sites])
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


def first_call(network: nn.Module, kind: type[nn.Module]) -> nn.Module | None:
    """Return the module of a kind that runs first, or None if there is none.

    Modules are in order of execution if the network can be traced, else in order of
    registration.
    """
    candidates = [module for module in network.modules() if isinstance(module, kind)]
    traced = _trace(network, candidates)
    called = [] if traced is None else [module for _, module in _calls(*traced)]
    ordered = [module for module in called if isinstance(module, kind)] + candidates
    return ordered[0] if ordered else None


class _SingleInput(nn.Module):
    """The network with one argument; other arguments keep their defaults."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.eval()

    def forward(self, inputs: Tensor) -> Any:
        return self.network(inputs)


class _SiteTracer(fx.Tracer):
    """Traces through the modules that contain one of `targets`, and no others."""

    def __init__(self, targets: Iterable[nn.Module]) -> None:
        super().__init__()
        self._targets = set(targets)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not any(
            child in self._targets for child in m.modules() if child is not m
        )


def _trace(
    network: nn.Module, targets: Iterable[nn.Module]
) -> tuple[nn.Module, fx.Graph] | None:
    root = _SingleInput(network)
    try:
        return root, _SiteTracer(targets).trace(root)
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
            copy = suffix.call_function(modulated, (modulation, copy, site_of[node]))
        copies[node] = copy
    return fx.GraphModule(root, suffix)

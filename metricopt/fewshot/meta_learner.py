"""What is meta-learned: where the steps of a new task start, and their geometry."""

import copy
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call

from metricopt.errors import ConfigError, require_kind
from metricopt.fewshot.examples import Examples, Loss, check_pair, tried_loss
from metricopt.geometry.dual_iteration import (
    DualPath,
    Order,
    check_descent,
    mirror_descent,
)
from metricopt.geometry.identity import Identity
from metricopt.geometry.mirror_map import MirrorMap

Named = Mapping[str, Tensor]
"""Parameters of the network by name: phi, or the dual z."""
PRECISE = (torch.float32, torch.float64)
"""Types of parameters that can be adapted."""
Geometry = Callable[[Named], MirrorMap]
"""Makes a mirror map for the parameters of a task."""


class MetaLearner(nn.Module):
    """A network that adapts to an episode by a few steps of mirror descent.

    The meta-parameters are the weights of the map g and the start of a new task. The
    start is z_0, as in mirror descent, unless the map is linear. A linear map P
    preconditions gradient descent in phi. The start is then phi_0, as in Meta-SGD,
    MT-net and Meta-Curvature, and z_0 is the point with P z_0 = phi_0. With the
    identity, this is MAML.

    A map is the identity before it is trained. Until then, a learner takes the steps of
    MAML from the weights of the network.

    Args:
        network: from inputs [n, ...] to outputs; copied. Parameters that require no
            gradient stay as they are.
        loss: from outputs and targets of an episode to a scalar; a module is copied.
        geometry: makes the map, for example `metricopt.geometry.BlockIAF`.
        steps: inner steps K, at least 0.
        rate: inner rate alpha, positive.
        order: "full" for meta-gradients with second derivatives, or "first".

    Attributes:
        network: the network, whose parameters are z_0, or phi_0 where g is linear.
        geometry: the map.

    Raises:
        ConfigError: if the network has nothing to adapt, or batch norms with running
            statistics, or parameters of half precision, or a setting is out of range.
        DivergedError: if a scale of the map overflows or vanishes at the start.

    Source: Zhang, Li, Giannakis, arXiv 2312.13486; Finn et al., ICML 2017.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        geometry: Geometry = Identity,
        *,
        steps: int = 5,
        rate: float = 0.01,
        order: Order = "full",
    ) -> None:
        super().__init__()
        require_kind("network", network, nn.Module, "a torch module")
        check_descent(steps, rate, order)
        require_kind("loss", loss, Callable, "a function of outputs and targets")
        require_kind("geometry", geometry, Callable, "a function to a MirrorMap")
        self.network = copy.deepcopy(network)
        # Learners that are compared must not train the weights of one loss in turn.
        self.loss = copy.deepcopy(loss) if isinstance(loss, nn.Module) else loss
        self.steps, self.rate, self.order = steps, rate, order
        phi_0 = _to_adapt(self.network)
        self._names = tuple(phi_0)
        self.geometry = geometry(phi_0)
        made = "what the function geometry makes"
        require_kind(made, self.geometry, MirrorMap, "a MirrorMap")
        self.geometry.to(next(iter(phi_0.values())))
        if not self.geometry.linear:
            self._start_from(self.geometry.inverse(phi_0))
        self.geometry.check(self.z_0())

    @property
    def size(self) -> int:
        """Number of meta-parameters."""
        return sum(each.numel() for each in self.parameters() if each.requires_grad)

    def z_0(self) -> Named:
        """Return where the dual iteration starts, differentiable.

        Raises:
            DivergedError: if a linear map has become singular.
        """
        start = self._start()
        return self.geometry.inverse(start) if self.geometry.linear else start

    def adapt(
        self, inputs: Tensor, targets: Tensor, steps: int | None = None
    ) -> DualPath[Named]:
        """Return the path of one episode: `path.phi[-1]` is the adapted network.

        Args:
            inputs: support, [S, ...].
            targets: support, [S, ...].
            steps: steps K, if not as many as in meta-training.

        Raises:
            ConfigError: if the network or the loss raises, or `steps` is no number of
                steps.
            ShapeError: if inputs, targets and outputs do not go together, or the loss
                is no scalar.
            DataError: if a target is no class, or the loss is not finite at z_0.
            DivergedError: if g(z_0) is not finite. A loss that diverges on the way is
                no error: the path shows it.
        """
        check_pair(inputs, targets)
        tried = False

        def loss(phi: Named) -> Tensor:
            nonlocal tried
            if tried:
                return self.loss(self.predict(phi, inputs), targets)
            tried = True
            predict = partial(self.predict, phi)
            return tried_loss(predict, self.loss, (inputs, targets))[1]

        return self._adapted(loss, steps)

    def predict(self, phi: Named, inputs: Tensor) -> Tensor:
        """Return the outputs of the network with parameters phi."""
        outputs: Tensor = functional_call(self.network, dict(phi), (inputs,))
        return outputs

    def query_loss(self, support: Examples, query: Examples) -> Tensor:
        """Return the loss on the query of one episode after adapting to its support.

        It is differentiable in all meta-parameters, by `order`, and works under `vmap`.
        The examples are not checked: `meta_train` does that before.
        """

        def loss(phi: Named, examples: Examples) -> Tensor:
            return self.loss(self.predict(phi, examples[0]), examples[1])

        path = self._adapted(lambda phi: loss(phi, support))
        return loss(path.phi[-1], query)

    def _adapted(
        self, loss: Callable[[Named], Tensor], steps: int | None = None
    ) -> DualPath[Named]:
        """Return the path of descent on a loss of phi."""
        return mirror_descent(
            self.geometry,
            self.z_0(),
            loss,
            steps=self.steps if steps is None else steps,
            rate=self.rate,
            order=self.order,
        )

    def _start(self) -> Named:
        """Return what is adapted, also of a learner that was frozen since."""
        return {name: self.network.get_parameter(name) for name in self._names}

    @torch.no_grad()
    def _start_from(self, z_0: Named) -> None:
        for name, weight in self._start().items():
            weight.copy_(z_0[name])


def _to_adapt(network: nn.Module) -> Named:
    """Return the parameters that are adapted, without their graph.

    Raises:
        ConfigError: if there are none, or episodes would leave a trace in the network.
    """
    for name, layer in network.named_modules():
        if getattr(layer, "running_mean", None) is not None:
            raise ConfigError(
                f"norms must use the statistics of the batch alone, but {name!r} has "
                "running ones, which would carry over from one episode to the next: "
                "make it with track_running_stats=False, or call "
                "torch.func.replace_all_batch_norm_modules_(network)"
            )
    found = {
        name: weight.detach()
        for name, weight in network.named_parameters()
        if weight.requires_grad
    }
    if not found:
        raise ConfigError("the network needs a parameter that requires a gradient")
    for name, weight in found.items():
        if weight.dtype not in PRECISE:
            kind = str(weight.dtype).removeprefix("torch.")
            raise ConfigError(
                f"the network must be float32 or float64, but {name!r} is {kind}: "
                "inner steps and inverses of maps need that precision; call "
                "network.float()"
            )
    return found

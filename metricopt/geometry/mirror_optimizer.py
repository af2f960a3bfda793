"""Mirror descent as an optimizer: the steps of any torch optimizer, in a geometry.

One changed line puts a PyTorch training loop into a learned geometry:

    optimizer = MirrorOptimizer(torch.optim.SGD([phi], lr=0.1), mirror_map)
    loss(phi).backward()
    optimizer.step()

Source: Zhang, Li, Giannakis, arXiv 2312.13486, "MD can be viewed as optimization over
dual variable". Differs: any direction and any optimizer, many rows of phi at a time, a
guard against steps that ascend.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor
from torch.func import vmap

from metricopt.errors import ConfigError, require_kind
from metricopt.geometry.health import tangent_cosine
from metricopt.geometry.mirror_map import MirrorMap


class MirrorHealth(NamedTuple):
    """What the steps of all rows in a geometry were like.

    Attributes:
        steps: number of steps; those of R rows are R steps.
        fallbacks: how many of them fell back on phi itself.
        moving: how many of them had a cosine, since z moved.
        cosine_sum: sum of their cosines.
    """

    steps: int = 0
    fallbacks: int = 0
    moving: int = 0
    cosine_sum: float = 0.0

    @property
    def fallback_share(self) -> float:
        """Share of the steps that fell back, in [0, 1]; 0 before the first step."""
        return self.fallbacks / max(1, self.steps)

    @property
    def cosine(self) -> float:
        """Mean cosine between the direction and what the map made of it, in [-1, 1].

        1 for the identity; NaN where z never moved.
        """
        return self.cosine_sum / self.moving if self.moving else math.nan

    def after(self, cosines: Tensor, fell_back: Tensor) -> "MirrorHealth":
        """Return the health after one more step of R rows, [R] each."""
        known = cosines[~cosines.isnan()]
        return MirrorHealth(
            self.steps + len(cosines),
            self.fallbacks + int(fell_back.sum()),
            self.moving + len(known),
            self.cosine_sum + known.sum().item(),
        )


class MirrorOptimizer(torch.optim.Optimizer):
    """Takes the steps of another optimizer in dual parameters z, with phi = g(z).

    The direction is whatever stands in `phi.grad`, a gradient in phi. The wrapped
    optimizer turns it into a move v of z, with its rate, momentum and so on; SGD moves
    by v = -rate * phi.grad. Then phi is g(z + v). z starts at the inverse of phi, so
    the start is the same as without a geometry, and follows phi wherever something
    else moves it. With the map `Identity` phi goes where the wrapped optimizer alone
    takes it, bit for bit.

    To first order phi moves by J v, J the Jacobian of g at z. Where v^T J v <= 0, or
    g(z + v) is not finite, a row falls back: phi moves by v itself, and z is the
    inverse of the new phi.

    Rows are independent and stepped together. Schedulers may hold this optimizer or
    the wrapped one, which share their settings.

    Args:
        optimizer: any torch optimizer over a single parameter phi, [d] or [R, d].
        mirror_map: g, of d parameters; its weights stay as they are.

    Attributes:
        move: v of the last step, shape [R, d].
        cosines: cosine between v and J v in the last step, before any fall-back, shape
            [R]; NaN where v is zero.
        health: of all steps so far.

    Raises:
        ConfigError: if the optimizer does not hold phi alone, or phi and the map differ
            in size.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, mirror_map: MirrorMap) -> None:
        expected = "a torch optimizer over phi"
        require_kind("optimizer", optimizer, torch.optim.Optimizer, expected)
        require_kind("mirror_map", mirror_map, MirrorMap, "a MirrorMap")
        self.phi = _only_parameter(optimizer, mirror_map)
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.optimizer, self.mirror_map = optimizer, mirror_map
        self._share()
        self.invert()
        self.move = torch.zeros_like(self._z)
        self.cosines = self._z.new_full((len(self._z),), torch.nan)
        self.health = MirrorHealth()

    @property
    def z(self) -> Tensor:
        """Dual parameters of phi as it is now, in its shape."""
        self._follow()
        return self._z.view_as(self.phi)

    def invert(self) -> None:
        """Set z to the inverse of phi: needed after the weights of the map changed."""
        self._image = self._rows().clone()
        self._z = self._inverse(self._image)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Move z by what the wrapped optimizer makes of `phi.grad`, and phi with it.

        Args:
            closure: evaluates the loss anew and returns it, as torch's optimizers take
                it; called once.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self.phi.grad is not None:
            self._step()
        return loss

    def _step(self) -> None:
        self._follow()
        before, z = self._image, self._z
        self.phi.copy_(z.view_as(self.phi))
        self.optimizer.step()
        after = self._rows().clone()
        self.move = after - z
        self.cosines = vmap(self._cosine)(z, self.move)
        phi = vmap(self.mirror_map)(after)
        # The cosine of a row that does not move is NaN, and no reason to fall back.
        wrong = (self.cosines <= 0) | ~phi.isfinite().all(1)
        if bool(wrong.any()):
            phi[wrong] = (before + self.move)[wrong]
            after[wrong] = self._inverse(phi[wrong])
        self._image, self._z = phi.clone(), after
        self.phi.copy_(phi.view_as(self.phi))
        self.health = self.health.after(self.cosines, wrong)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the wrapped optimizer, with z and its health."""
        own = {"z": self._z.clone(), "image": self._image.clone()}
        counts = self.health._asdict()
        return {**self.optimizer.state_dict(), "mirror": {**own, "health": counts}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` returned; phi and the map are kept elsewhere.

        Raises:
            ConfigError: if the state is that of another kind of optimizer, or of
                another number of rows.
        """
        inner = dict(state_dict)
        own = inner.pop("mirror", None)
        if own is None or own["z"].shape != self._z.shape:
            got = "none" if own is None else list(own["z"].shape)
            raise ConfigError(
                "the state must be of a MirrorOptimizer with z of shape "
                f"{list(self._z.shape)}, got {got}"
            )
        self.optimizer.load_state_dict(inner)
        self._share()
        self._z, self._image = own["z"].to(self._z), own["image"].to(self._image)
        self.health = MirrorHealth(**own["health"])

    def _share(self) -> None:
        """Hold the groups and the state of the wrapped optimizer, not copies."""
        self.param_groups = self.optimizer.param_groups
        self.state = self.optimizer.state

    def _follow(self) -> None:
        """Bring z to the phi of now, in the rows that something else has moved."""
        rows = self._rows()
        moved = (rows != self._image).any(1)
        if bool(moved.any()):
            self._z[moved] = self._inverse(rows[moved])
            self._image = rows.clone()

    def _rows(self) -> Tensor:
        return self.phi.detach().reshape(-1, self.phi.shape[-1])

    @torch.no_grad()
    def _inverse(self, phi: Tensor) -> Tensor:
        z: Tensor = vmap(self.mirror_map.inverse)(phi)
        # The identity returns what it got, which the next step would change.
        return z.clone()

    def _cosine(self, z: Tensor, move: Tensor) -> Tensor:
        return tangent_cosine(self.mirror_map, z, move)


def _only_parameter(optimizer: torch.optim.Optimizer, mirror_map: MirrorMap) -> Tensor:
    """Return phi, the one parameter of an optimizer, of the size of the map."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if len(parameters) != 1:
        raise ConfigError(
            "MirrorOptimizer wraps an optimizer over phi alone, got one over "
            f"{len(parameters)} parameters"
        )
    phi: Tensor = parameters[0]
    size = mirror_map.shapes.size
    if phi.ndim not in (1, 2) or phi.shape[-1] != size or not len(phi):
        raise ConfigError(
            f"phi must have shape [{size}] or [R, {size}], as the map has {size} "
            f"parameters; got {list(phi.shape)}"
        )
    return phi

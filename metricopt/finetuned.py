"""What `finetune` returns: a small phi, what it gained, and what that cost."""

import math
import os
from dataclasses import dataclass, field

from torch import Tensor, nn

from metricopt.adapters.export import save_phi
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.methods.result import Checkpoint
from metricopt.metrics.base import Metric


@dataclass(frozen=True)
class Spent:
    """What one call of `finetune` spent.

    Attributes:
        queries: metric queries on the observe split, including meta-training, the
            untouched network and the chosen phi.
        gradient_steps: steps of fine-tuning, without those of meta-training.
        seconds: wall-clock time of the whole call.
    """

    queries: int
    gradient_steps: int
    seconds: float


@dataclass(frozen=True)
class Finetuned:
    """A frozen network with the adapter parameters found for a metric.

    The network itself is as it was, frozen and in evaluation mode, until `apply`.

    Attributes:
        adapter: the adapter of the network.
        phi: chosen adapter parameters, shape [d], on the device of the network; zero
            if nothing observed was better than the untouched network.
        metric: the metric to improve.
        metric_before: metric of the untouched network on observe, native units.
        metric_after: metric of phi on observe, native units; never worse than
            `metric_before`.
        metric_proposed: metric of the method's proposal, native units; worse than
            `metric_before` if the proposal was turned down.
        method: name of the method.
        spent: queries, steps and seconds.
        history: states the method passed through, with their costs in [0, 1].
        notes: further figures of the method.
        health: whether to trust the value function, and why; None if the method has
            none, or its budget is too small for the check.
    """

    adapter: NetworkAdapter
    phi: Tensor
    metric: Metric
    metric_before: float
    metric_after: float
    metric_proposed: float
    method: str
    spent: Spent
    history: tuple[Checkpoint, ...] = ()
    notes: dict[str, float] = field(default_factory=dict)
    health: str | None = None

    @property
    def turned_down(self) -> bool:
        """Whether the method's proposal was worse than the untouched network."""
        gain = self.metric_proposed - self.metric_before
        return gain < 0 if self.metric.higher_is_better else gain > 0

    def apply(self) -> nn.Module:
        """Modulate the network by phi in place, until `remove`, and return it."""
        self.adapter.attach(self.phi)
        return self.adapter.network

    def remove(self) -> nn.Module:
        """Restore the network to what it was before `apply`, and return it."""
        self.adapter.detach()
        return self.adapter.network

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write phi as a safetensors file that names its adapter and network.

        To use it elsewhere, make the same adapter of the same network, with
        `auto_adapter` or by hand, and call `adapter.attach(load_phi(path, adapter))`.
        """
        save_phi(path, self.phi, self.adapter)

    def summary(self) -> str:
        """Return a few plain lines: what was gained, and what was spent for it."""
        lines = [
            f"{self.metric.name} on the observe split: {self.metric_before:.4g} -> "
            f"{self.metric_after:.4g} ({self.metric.direction} is better) with "
            f"{self.spent.queries} metric queries and {self.spent.gradient_steps} "
            f"gradient steps in {self.spent.seconds:.1f} s ({self.method})."
        ]
        if self.turned_down:
            lines.append(
                f"The proposal of {self.method} scored {self.metric_proposed:.4g}, "
                "worse than the untouched network, which was kept: phi = 0."
            )
        elif math.isclose(self.metric_before, self.metric_after, rel_tol=1e-9):
            lines.append("Nothing was gained on this split.")
        if self.health:
            lines.append(f"Value function: {self.health}")
        lines.append("phi was chosen on the observe split: judge it on other data.")
        return "\n".join(lines)

"""Points on the way down the loss gradient.

Source: nobody, 2026.
"""

import torch

from baselines.phi_methods.contract import RIVALS
from metricopt.methods.contract import Method
from metricopt.methods.result import Archive


@RIVALS.register("half-way")
class HalfWay(Method):
    """Queries points on the way down the loss gradient, and keeps the best."""

    sees = "loss gradients"

    def run(self, task, budget, generator, *, rows=1, prepared=None):
        archive = Archive(task, budget, rows)
        phi = torch.zeros(rows, task.size, requires_grad=True)
        (slope,) = torch.autograd.grad(task.losses(phi, generator).sum(), phi)
        lengths = torch.linspace(0, 1, archive.remaining + 1)[1:, None]
        archive.query(-lengths * torch.nn.functional.normalize(slope)[:, None])
        return archive.result()

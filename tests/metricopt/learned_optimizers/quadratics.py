"""Quadratics as tasks of a training distribution, and what moves them by hand."""

import torch

from metricopt.learned_optimizers import InnerTasks, LearnedOptimizer

SIZE = 8


class Quadratics(InnerTasks):
    """loss = sum a (phi - c)^2 / 2 over axes turned at random; cost = q / (1 + q).

    Curvatures are 10^U(-2, 0), and all of a task are multiplied by 10^U(-1, 0). The
    metric is least elsewhere than the loss, by a fixed offset.
    """

    def __init__(self, numbers, size=SIZE, dtype=torch.float32):
        made = [self._one(number, size) for number in numbers]
        self.start, self.axes, self.curvature = (
            torch.stack(part).to(dtype) for part in zip(*made, strict=True)
        )

    def _one(self, number, size):
        generator = torch.Generator().manual_seed(number)
        start = torch.randn(size, generator=generator)
        turned = torch.linalg.qr(torch.randn(size, size, generator=generator)).Q
        powers = -2 * torch.rand(size, generator=generator)
        scale = 10 ** -torch.rand((), generator=generator)
        return start, turned, scale * 10**powers

    def starts(self):
        return self.start

    def losses(self, phi, step):
        # [C, B, d] by [B, d, d]
        turned = (phi[..., None, :] @ self.axes).squeeze(-2)
        return (self.curvature * turned.square()).sum(-1) / 2

    def costs(self, phi, step):
        gap = (phi - 0.2).square().mean(-1)
        return gap / (1 + gap)


class Noisy(Quadratics):
    """Quadratics whose minimum moves from step to step, the same for all copies."""

    def losses(self, phi, step):
        generator = torch.Generator().manual_seed(step)
        shift = 0.1 * torch.randn(phi.shape[1:], generator=generator)
        return super().losses(phi - shift.to(phi), step)


class Bare(Quadratics):
    """Quadratics without a metric."""

    costs = InnerTasks.costs


class Line(InnerTasks):
    """B copies of the loss phi^2 in one dimension, from phi = 1."""

    def __init__(self, count):
        self.count = count

    def starts(self):
        return torch.ones(self.count, 1, dtype=torch.float64)

    def losses(self, phi, step):
        return phi.square().squeeze(-1)


class Constant(LearnedOptimizer):
    """Adds its only weight to every coordinate."""

    inputs = ()

    def __init__(self, weight, horizon=4):
        super().__init__(horizon)
        value = torch.tensor(float(weight), dtype=torch.float64)
        self.weight = torch.nn.Parameter(value)

    def settings(self):
        return {"weight": self.weight.item(), "horizon": self.horizon}

    def start(self, phi):
        return {}

    def _move(self, seen, state):
        return self.weight.expand_as(seen.phi), state


class Descent(LearnedOptimizer):
    """Gradient descent with a learned rate, its only weight."""

    inputs = ("gradient",)

    def __init__(self, rate, horizon=6, dtype=torch.float64):
        super().__init__(horizon)
        self.rate = torch.nn.Parameter(torch.tensor(float(rate), dtype=dtype))

    def settings(self):
        return {"rate": self.rate.item(), "horizon": self.horizon}

    def start(self, phi):
        return {}

    def _move(self, seen, state):
        return -self.rate * seen.gradient, state


def tuned_loss(make, tasks, steps):
    """The mean log-ratio of losses of a torch optimizer at its best rate on tasks."""
    found = []
    for rate in (1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0):
        phi = torch.nn.Parameter(tasks.starts()[None].clone())
        optimizer, losses = make([phi], rate), []
        for step in range(steps + 1):
            optimizer.zero_grad()
            loss = tasks.losses(phi, step)
            losses.append(loss.detach())
            loss.sum().backward()
            optimizer.step()
        every = torch.stack(losses) + 1e-8
        score = (every[1:].log() - every[0].log()).clamp(-20, 20).mean()
        found.append(score.item() if score.isfinite() else 20.0)
    return min(found)

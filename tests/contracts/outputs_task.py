"""What a method that sees outputs works on in the tests of contracts."""

import functools

import torch
from torch import Tensor, nn

from baselines.phi_methods.contract import RIVALS
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.algorithm1.mirror_training import MirrorRecipe
from metricopt.algorithm1.recipe import Recipe
from metricopt.algorithm1.trajectories import Rollout
from metricopt.learned_optimizers.settings import OptimizerTraining
from metricopt.methods.contract import METHODS, Method
from metricopt.methods.result import Budget
from metricopt.on_outputs.cross_fitting import CrossFitting
from metricopt.on_outputs.search import SearchSettings
from metricopt.on_outputs.snapshots import PortfolioSettings
from metricopt.reading.callables import make_metric
from metricopt.tasks.network_task import NetworkTask
from metricopt.tasks.sampling import Split
from tests.metricopt.quadratic_task import FlatTask, QuadraticTask

SIZE = 6


class OutputsTask(NetworkTask):
    """A linear network on three clouds, which confuses two of them."""

    def __init__(self, metric: object = "f-macro") -> None:
        generator = torch.Generator().manual_seed(0)
        targets = torch.arange(180) % 3
        centres = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
        inputs = centres[targets] + 0.7 * torch.randn(180, 2, generator=generator)
        network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
        with torch.no_grad():
            for weight in network.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator))
        flat = {"higher_is_better": True} if callable(metric) else {}
        super().__init__(
            DynamicBias(network, size=SIZE, example_input=inputs[:4]),
            nn.CrossEntropyLoss(),
            make_metric(metric, **flat),
            train=Split(inputs[:90], targets[:90]),
            observe=Split(inputs[90:], targets[90:]),
        )

    def cost(self, phi: Tensor) -> Tensor:
        """Return the cost of phi [B, d], [B], without counting a query."""
        return self._observe(phi)


KINDS = {
    name: registry.get(name) for registry in (METHODS, RIVALS) for name in registry
}
"""Every registered method and rival."""
QUICK = {
    "metricopt-mirror": {
        "recipe": Recipe(rollout=Rollout(12, 3)),
        "geometry": MirrorRecipe(tasks=2, block=2),
    },
    "metricopt-learned": {
        "training": OptimizerTraining(iterations=3, tasks=2, pairs=1)
    },
    "metricopt-outputs": {
        "search": SearchSettings(steps=3),
        "cross_fitting": CrossFitting(steps=10, samples=10),
    },
    "portfolio": {"settings": PortfolioSettings(marks=(2, 4))},
    "trust-region-bo": {"candidates": 20, "fit_steps": 2, "reach": 2.0},
    "dictionary": {"evaluations": 80},
    "white-box": {"formula": "f-macro", "rates": (0.1,), "steps": 20},
}


def budget_of(name: str) -> Budget:
    """Return 45 queries, or fewer for methods that think long about each."""
    slow = {"metricopt-outputs": 16, "adaptive-surrogates": 16, "trust-region-bo": 24}
    return Budget(queries=slow.get(name, 45), gradient_steps=12)


def seeded(seed: int = 0) -> torch.Generator:
    """Return a generator for one run."""
    return torch.Generator().manual_seed(seed)


def needs_outputs(name: str) -> bool:
    """Whether a method works on statistics of outputs."""
    return not quick(name).suits(QuadraticTask())


def quick(name: str) -> Method:
    """Return the method of this name, shortened where it takes long."""
    return KINDS[name](**QUICK.get(name, {}))


def task_for(name: str) -> QuadraticTask | OutputsTask:
    """Return a task on which the method of this name can work."""
    return OutputsTask() if needs_outputs(name) else QuadraticTask()


def flat_task_for(name: str) -> FlatTask | OutputsTask:
    """Return the same with a metric that never moves."""
    constant = functools.partial(lambda outputs, targets, value: value, value=0.25)
    return OutputsTask(constant) if needs_outputs(name) else FlatTask()

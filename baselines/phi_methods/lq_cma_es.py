"""CMA-ES with a linear-quadratic surrogate: most candidates are never queried.

Source: Hansen, "A global surrogate assisted CMA-ES", GECCO 2019; `cma.fmin_lq_surr2`,
which is called here. Differs: a search starts anew where it stops before its budget is
spent. The package inverts a matrix of d^2 x d^2 numbers, so d is limited.
"""

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baselines.phi_methods.contract import RIVALS
from metricopt.methods.contract import Method, Preparation
from metricopt.methods.evolution import draw_seeds
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.tasks.task import Task

LARGEST = 32
"""Greatest number d of adapter parameters."""


class _SpentError(Exception):
    """Ends a search of the package when no query is left."""


@RIVALS.register("lq-cma-es")
@dataclass(frozen=True)
class LQCMAES(Method):
    """lq-CMA-ES from phi = 0; returns the best observed phi.

    Attributes:
        deviation: initial step size sigma of every coordinate.
    """

    deviation: float = 0.5

    def suits(self, task: Task) -> bool:
        """Return whether phi has at most 32 coordinates."""
        return task.size <= LARGEST

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Spend all queries of the budget on every row, one row after the other."""
        archive = Archive(task, budget, rows)
        found = [
            self._search(task, archive.remaining, seed)
            for seed in draw_seeds(rows, generator)
        ]
        phi = torch.stack([path for path, _ in found])
        costs = torch.stack([observed for _, observed in found])
        archive.phi = torch.cat([archive.phi, phi], 1)
        archive.costs = torch.cat([archive.costs, costs], 1)
        return archive.result()

    def _search(self, task: Task, queries: int, seed: int) -> tuple[Tensor, Tensor]:
        """Return the phi [n, d] that one search queries, with their costs [n]."""
        path: list[Tensor] = []
        costs: list[Tensor] = []

        def cost(candidate: NDArray[np.float64]) -> float:
            if len(path) == queries:
                raise _SpentError
            phi = torch.tensor(np.asarray(candidate)[None], dtype=torch.float32)
            costs.append(task.observe(phi))
            path.append(phi)
            return costs[-1].item()

        while len(path) < queries:
            self._until_stopped(cost, task.size, seed + len(path))
        none = torch.empty(0, task.size), torch.empty(0, dtype=torch.float64)
        return torch.cat([none[0], *path]), torch.cat([none[1], *costs])

    def _until_stopped(
        self, cost: Callable[[NDArray[np.float64]], float], size: int, seed: int
    ) -> None:
        with warnings.catch_warnings():
            # cma warns about plotting packages, and about models of few points.
            warnings.simplefilter("ignore")
            import cma

            options = {"seed": seed, "verbose": -9, "tolflatfitness": 10**9}
            with contextlib.suppress(_SpentError):
                cma.fmin_lq_surr2(cost, size * [0.0], self.deviation, options)

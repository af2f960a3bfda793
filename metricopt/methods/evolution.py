"""CMA-ES searches in lock-step, with the `cma` package."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metricopt.methods.result import Archive
from metricopt.tasks.task import Task

GRADIENTS, ISOTROPIC = 64, 0.1
"""Gradients, and isotropic share, of the covariance that `covariance_root` makes."""


def evolution_strategy(
    size: int,
    deviation: float,
    seed: int,
    stream: np.random.RandomState | None = None,
) -> Any:
    """Return a `cma.CMAEvolutionStrategy` at phi = 0 that never stops by itself.

    It draws from a stream that is seeded here, not from numpy's global state, which
    other threads use. Searches in lock-step share a stream, so the last seed counts.
    """
    stream = np.random.RandomState() if stream is None else stream
    stream.seed(seed)
    with warnings.catch_warnings():
        # cma warns about optional plotting packages when it is imported.
        warnings.simplefilter("ignore")
        import cma
    # A seed that is no number leaves numpy's global state alone.
    options = {"randn": stream.randn, "seed": np.nan}
    options |= {"verbose": -9, "tolflatfitness": 10**9}
    return cma.CMAEvolutionStrategy(np.zeros(size), deviation, options)


def evolution_strategies(size: int, deviation: float, seeds: list[int]) -> list[Any]:
    """Return searches in lock-step, one for each seed; see `evolution_strategy`."""
    stream = np.random.RandomState()
    return [evolution_strategy(size, deviation, seed, stream) for seed in seeds]


def spend(
    archive: Archive,
    searches: list[Any],
    ask: Callable[[int], Any] | None = None,
    root: Tensor | None = None,
    start: Tensor | None = None,
) -> None:
    """Query what the search of every row asks for, until no query is left.

    Args:
        archive: what is queried, with its budget.
        searches: one for each row.
        ask: returns the candidates of a row to query; all its search asks for if None.
        root: matrix from coordinates of the searches to phi, [d, d]; None for the same.
        start: phi at which the coordinates of each row are 0, [R, d]; None for 0.
    """
    while archive.remaining:
        asked = [
            np.asarray(search.ask() if ask is None else ask(row))
            for row, search in enumerate(searches)
        ]
        phi = torch.tensor(np.stack(asked), dtype=torch.float32)
        phi = phi if root is None else phi @ root.T
        phi = phi if start is None else start[:, None] + phi
        costs = archive.query(phi[:, : archive.remaining])
        if costs.shape[1] == phi.shape[1]:
            for search, found, cost in zip(
                searches, asked, costs.tolist(), strict=True
            ):
                search.tell(list(found), cost)


def draw_seeds(count: int, generator: torch.Generator) -> list[int]:
    """Draw seeds for numpy's generators, above 0: `cma` takes 0 as "use the clock"."""
    drawn = torch.randint(1, 2**31 - 1, (count,), generator=generator)
    return [int(seed) for seed in drawn]


def covariance_root(
    task: Task, generator: torch.Generator, gradients: int, isotropic: float
) -> Tensor:
    """Return L with L L' = isotropic I + (1 - isotropic) d C / tr C, shape [d, d].

    C is the second moment of so many mini-batch loss gradients at phi = 0; nothing is
    queried.
    """
    phi = torch.zeros(gradients, task.size, requires_grad=True)
    (found,) = torch.autograd.grad(task.losses(phi, generator).sum(), phi)
    moment = found.T @ found
    identity = torch.eye(task.size)
    trace = moment.trace()
    if not trace > 0:
        return identity
    shaped = task.size * moment / trace
    root: Tensor = torch.linalg.cholesky(
        isotropic * identity + (1 - isotropic) * shaped
    )
    return root

"""CMA-ES searches in lock-step, with the `cma` package."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor


def evolution_strategy(size: int, deviation: float, seed: int) -> Any:
    """Return a `cma.CMAEvolutionStrategy` at phi = 0 that never stops by itself."""
    with warnings.catch_warnings():
        # cma warns about optional plotting packages when it is imported.
        warnings.simplefilter("ignore")
        import cma
    options = {"seed": seed, "verbose": -9, "tolflatfitness": 10**9}
    return cma.CMAEvolutionStrategy(np.zeros(size), deviation, options)


def tell(searches: list[Any], asked: list[Any], costs: Tensor) -> None:
    """Report the costs [R, n] of what every search asked for."""
    for search, candidates, cost in zip(searches, asked, costs.tolist(), strict=True):
        search.tell(list(candidates), cost)


def draw_seeds(count: int, generator: torch.Generator) -> list[int]:
    """Draw seeds for numpy's generators, above 0: `cma` takes 0 as "use the clock"."""
    drawn = torch.randint(1, 2**31 - 1, (count,), generator=generator)
    return [int(seed) for seed in drawn]

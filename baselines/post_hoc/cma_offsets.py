"""Class offsets found by CMA-ES: as many coordinates as classes, whatever the network.

The plug-in form argmax_k (log p_k + offset_k) with a search that needs no order of the
classes and no grid. Ours, made of Hansen's `cma` package.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from baselines.post_hoc.class_scores import (
    Improvement,
    OffsetQueries,
    log_probabilities,
)
from baselines.validation import Validation
from metricopt.errors import require_ranges
from metricopt.methods.evolution import draw_seeds, evolution_strategy


@dataclass(frozen=True)
class OffsetEvolution:
    """How the offsets are searched.

    Attributes:
        deviation: initial step size of every offset, in units of log-probability.
        max_queries: metric queries, that of zero offsets included.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    deviation: float = 0.5
    max_queries: int = 150

    def __post_init__(self) -> None:
        least = {"deviation": "> 0", "max_queries": ">= 1"}
        require_ranges("an evolution of offsets", vars(self), **least)


def evolve_offsets(
    outputs: Tensor,
    validation: Validation,
    *,
    search: OffsetEvolution,
    generator: torch.Generator,
) -> tuple[Improvement, ...]:
    """Return the improvements of a search by CMA-ES that starts at 0.

    Args:
        outputs: logits on the observe split, shape [N, C]; one logit counts as two
            classes.
        validation: the metric, any black box.
        search: step size and number of queries, all of which are made.
        generator: source of all randomness.

    Raises:
        ShapeError: if outputs have no class axis.
        BudgetExceededError: if the queries would exceed the limit of the validation.
    """
    log_probs = log_probabilities(outputs)
    queries = OffsetQueries(log_probs, validation, search.max_queries)
    (seed,) = draw_seeds(1, generator)
    evolution = evolution_strategy(log_probs.shape[1], search.deviation, seed)
    while queries.remaining:
        asked = np.stack(evolution.ask())
        costs = queries.costs(torch.from_numpy(asked).to(log_probs))
        if len(costs) == len(asked):
            evolution.tell(list(asked), costs.tolist())
    return tuple(queries.trace)

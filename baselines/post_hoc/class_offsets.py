"""Post-hoc class offsets: shift the log-probability of every class to suit the metric.

This is the threshold shift for many classes.

Source: Koyejo et al., NeurIPS 2014; Narasimhan et al., NeurIPS 2014. Differs: the
offsets are found by coordinate ascent on a grid, which works with any black-box metric
on logits. An offset moves only where a candidate is strictly better.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.post_hoc.class_scores import Improvement, OffsetQueries
from baselines.validation import Validation
from metricopt.errors import ShapeError, require_ranges


@dataclass(frozen=True)
class OffsetSearch:
    """How far and how long the offsets are searched.

    Attributes:
        passes: most passes over the classes; a pass that changes nothing is the last.
        candidates: values tried per class, equally spaced, both ends included.
        reach: the ends are -reach and reach, in units of log-probability. Where the
            classes are far from equally frequent, their log prior ratios exceed 1.
        max_queries: most metric queries, including the one of zero offsets; None for
            no limit other than the passes.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    passes: int = 3
    candidates: int = 41
    reach: float = 1.0
    max_queries: int | None = None

    def __post_init__(self) -> None:
        require_ranges(
            "a search of offsets",
            vars(self),
            passes=">= 1",
            candidates=">= 2",
            reach="in (0, inf)",
            max_queries=">= 1",
        )

    def grid(self) -> Tensor:
        """Return the candidates in ascending order, float64, shape [candidates]."""
        # Not linspace: its middle is not exactly 0, which costs a query per class.
        steps = torch.arange(1 - self.candidates, self.candidates, 2).double()
        return self.reach * steps / (self.candidates - 1)


def tune_offsets(
    outputs: Tensor, validation: Validation, *, search: OffsetSearch
) -> tuple[Improvement, ...]:
    """Return the additive offsets of log-softmax that make the metric best.

    Coordinate ascent from 0: class by class, the offset moves to the candidate with the
    best metric, the lowest of equal ones. It stays if none is strictly better.

    Args:
        outputs: class logits on the observe split, shape [N, C], C >= 2.
        validation: the metric, any black box; one query per candidate other than the
            present offset, whose value is known, and one for zero offsets.
        search: candidates, passes and limit of queries.

    Returns:
        Every improvement in order, zero offsets first.

    Raises:
        ShapeError: if outputs are not [N, C] with C >= 2.
        BudgetExceededError: if the queries would exceed the limit of the validation.
    """
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        raise ShapeError(
            "class offsets need class logits, outputs [N, C] with C >= 2, "
            f"got {list(outputs.shape)}"
        )
    queries = OffsetQueries(outputs.log_softmax(1), validation, search.max_queries)
    grid = search.grid().to(outputs)
    for _ in range(search.passes):
        before = queries.best
        for label in range(outputs.shape[1]):
            here = queries.best.offsets
            others = grid[grid != here[label]]
            candidates = here.repeat(len(others), 1)
            candidates[:, label] = others
            queries.costs(candidates)
        if queries.best is before:
            break
    return tuple(queries.trace)

"""One-dimensional searches along given lines of phi, such as a shift of the outputs.

What one number can gain is found in a few queries, before any search of all of phi.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from metricopt.methods.attempts import Attempt
from metricopt.methods.result import Archive

STEP = 0.6
"""Distance of the first points on a line."""
EACH_WAY = 2
"""First points on either side of the start."""
HALVINGS = 3
"""How often the distance to the best point is halved; each time takes two queries."""
PER_LINE = 2 * EACH_WAY + 2 * HALVINGS
"""Queries that one line takes."""
APART = 4
"""Most outputs that are shifted one at a time."""


def shift_lines(
    outputs: Tensor, place: slice, size: int, unit: Sequence[float] | None = None
) -> Tensor:
    """Return lines of phi along which outputs are shifted.

    All outputs together, then each, if there are a few. A unit is the standard
    deviation of an output over the examples.

    Args:
        outputs: untouched outputs of N examples, [N, C, ...].
        place: place of the C offsets in phi.
        size: size d of phi.
        unit: what each of the C offsets is measured in; None for the units of outputs.

    Returns:
        Lines, shape [L, d].
    """
    columns = outputs.transpose(0, 1).flatten(1)
    spread = columns.std(1, correction=0).cpu().float()
    if unit is not None:
        spread /= torch.tensor(unit)
    kinds = [spread]
    if 1 < len(spread) <= APART:
        kinds += list(torch.diag(spread))
    lines = torch.zeros(len(kinds), size)
    lines[:, place] = torch.stack(kinds)
    return lines


def search_lines(archive: Archive, lines: Tensor, queries: int) -> Tensor:
    """Query points on lines [L, d], one line after the other, and return the best.

    Each starts from the best phi so far. The search ends before it has made more than
    so many queries for each row.

    Returns:
        The best phi of every row, shape [R, d].
    """
    until = archive.spent + min(queries, archive.remaining)
    for line in lines:
        if archive.spent + PER_LINE > until:
            break
        start, _ = archive.best()
        steps = STEP * torch.arange(-EACH_WAY, EACH_WAY + 1)
        costs = _on_line(archive, start, line, steps[steps != 0])
        if bool((costs == costs[:, :1]).all()):
            continue  # the metric does not see this shift
        distance = STEP / 2
        for _ in range(HALVINGS):
            best, _ = archive.best()
            _on_line(archive, best, line, torch.tensor([-distance, distance]))
            distance /= 2
    return archive.best()[0]


def best_shifts(archive: Archive) -> tuple[tuple[Attempt, ...], ...]:
    """Return the best of each row after lines alone were searched, shifts of outputs.

    Nothing where no line was, or where bounds make the cost more than the metric's.
    """
    if archive.spent == 1 or archive.task.bounds is not None:
        return ()
    costs, best = archive.costs[:, 1:].min(1)
    rows = zip(archive.phi[:, 1:], costs.tolist(), best, strict=True)
    return tuple(
        (Attempt("one shift", phi[place], cost, observed=True),)
        for phi, cost, place in rows
    )


def _on_line(archive: Archive, start: Tensor, line: Tensor, steps: Tensor) -> Tensor:
    """Query all rows of `start` [R, d] after steps [n] along a line; return [R, n]."""
    return archive.query(start[:, None] + steps[:, None] * line)

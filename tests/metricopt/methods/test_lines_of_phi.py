"""One-dimensional searches: the best point on a line, within a limit of queries."""

import pytest
import torch

from metricopt.methods.guided_cma import GuidedCMA
from metricopt.methods.lines_of_phi import APART, PER_LINE, search_lines, shift_lines
from metricopt.methods.result import Archive, Budget
from tests.metricopt.drawn import seeded
from tests.metricopt.quadratic_task import QuadraticTask


def spread_outputs(columns):
    """Outputs [N, C] whose columns have the deviations 1, 2, ..."""
    outputs = torch.randn(500, columns, generator=seeded())
    outputs = (outputs - outputs.mean(0)) / outputs.std(0, correction=0)
    return outputs * torch.arange(1, columns + 1)


@pytest.mark.parametrize("columns", [1, 3, APART + 1])
def test_lines_shift_outputs_by_their_deviations(columns):
    lines = shift_lines(spread_outputs(columns), slice(2, 2 + columns), 2 + columns)
    expected = torch.arange(1.0, columns + 1)
    torch.testing.assert_close(lines[0, 2:], expected)
    assert not lines[:, :2].any()
    assert len(lines) == 1 + (columns if 1 < columns <= APART else 0)
    if len(lines) > 1:
        torch.testing.assert_close(lines[1:, 2:], torch.diag(expected))


def test_channels_of_maps_are_columns():
    maps = spread_outputs(2).view(50, 5, 2, 2).movedim(2, 1).reshape(50, 2, 10)
    lines = shift_lines(maps, slice(0, 2), 2)
    torch.testing.assert_close(lines[0], maps.movedim(1, 2).flatten(0, 1).std(0, False))


def test_the_best_point_of_a_line_is_found_in_a_few_queries():
    task = QuadraticTask()
    line = task.metric_minimum / 1.2  # beyond its end in units of the line
    archive = Archive(task, Budget(50, 0), rows=2)
    found = search_lines(archive, line[None], 40)
    assert archive.spent == 1 + PER_LINE
    along = torch.linspace(-1.5, 1.5, 21)[:, None] * line
    assert found.shape == (2, task.size)
    assert (task.cost(found) <= task.cost(along).min() + 1e-3).all()


def test_no_line_is_begun_without_the_queries_for_it():
    task = QuadraticTask()
    archive = Archive(task, Budget(50, 0), rows=1)
    found = search_lines(archive, torch.eye(task.size), PER_LINE + 3)
    assert archive.spent == 1 + PER_LINE
    assert search_lines(archive, torch.eye(task.size), PER_LINE - 1).equal(found)
    assert archive.spent == 1 + PER_LINE


def test_a_line_that_the_metric_does_not_see_is_left():
    task = QuadraticTask()
    archive = Archive(task, Budget(50, 0), rows=1)
    none = torch.zeros(1, task.size)
    assert not search_lines(archive, none, 40).any()
    assert archive.spent == 1 + 4


def test_cma_es_goes_on_from_the_best_point_of_a_line():
    task = QuadraticTask()
    lines = task.metric_minimum[None]
    result = GuidedCMA(lines=lines).run(task, Budget(40, 0), seeded(1))
    assert result.queries == 40
    asked = torch.cat(task.observed[-3:])  # the last candidates
    assert (asked - task.metric_minimum).norm(dim=1).mean() < task.metric_minimum.norm()
    plain = GuidedCMA().run(task, Budget(40, 0), seeded(1))
    assert task.cost(result.phi) < task.cost(plain.phi)

"""Scores of two groups, which have the same recall once everybody is positive."""

import numpy as np

_drawn = np.random.default_rng(0)
GROUP = _drawn.integers(0, 2, 600)
LABELS = (_drawn.random(600) < 0.3 + 0.2 * GROUP).astype(int)
SCORES = 1.5 * (LABELS - 0.5) + _drawn.normal(size=600) - 0.8 * GROUP


def gap(outputs, targets, group):
    """The distance of the groups' recalls."""
    found = (outputs > 0)[targets == 1]
    first, second = (found[group[targets == 1] == each].mean() for each in (0, 1))
    return abs(first - second)


GIVEN = {"columns": {"group": GROUP}, "higher_is_better": False}
ALIKE = "with phi all examples of observe are decided as class 1"
"""What is said of everybody being positive."""

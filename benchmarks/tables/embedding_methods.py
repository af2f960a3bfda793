"""Parts of tables whose rows are embedding networks that methods train."""

from collections.abc import Sequence
from typing import Any

from benchmarks.problems.retrieval.method_networks import MethodRetrieval
from benchmarks.rows.embedding_methods import trained
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import NATURAL
from benchmarks.tables.table import Place

ASKS = "is not trained here: this table trains a few named methods only"
FIELDS: dict[str, Any] = {
    "blocks": NATURAL,
    "untouched_row": "margin",
    "rival_row": "margin-mixture-noise",
    "query_budgets": (),
}
"""Fields of their layouts."""
NOTES = (
    "The ten functions of the distance mixture are in a supplement that is not "
    "public, but for the two that it begins with, d^2 and 0.5 / d. Ours are two sets "
    "by name, in `distance_mixture`.",
    "The controller sees means over observe: of d+ over all pairs of a class, and of "
    "d- over the nearest image of another class to each. One policy decides on all "
    "parameters.",
    "Networks of one framework begin with the same weights, and all take as many "
    "steps. The last state is kept.",
    "One network trains under a controller; in the paper 10 share one. Tier local: ALA "
    "decides every 10 steps instead of 200, by one measurement of the metric: 59 times "
    "on photographs, 116 times on faces.",
    "Tier local: a policy can let all embeddings meet, by weights of 0 for all "
    "functions of d-, and then no reward tells it the way back. With two or ten steps "
    "of the policy after each reward instead of one, a first training on photographs "
    "ended so, on observe, before any test. With one step, as in the paper, some "
    "trainings end so, too.",
    "Tier local: networks are trained in bfloat16 where the machine is fast at it.",
)


def place(
    problem: MethodRetrieval, methods: Sequence[str], also: tuple[Unit, ...] = ()
) -> Place:
    """Return where networks of methods run.

    Args:
        problem: the images.
        methods: names of the rows, in order.
        also: further metrics that results are judged by.
    """
    rows = tuple(map(trained, methods))
    known = {"rows": rows, "asks": ASKS, "also": also}
    return Place("natural", problem, problem.metric, problem.name, **known)

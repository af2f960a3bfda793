"""Too few queries for what a method prepares, refused before the first of them."""

from dataclasses import replace

from metricopt.errors import ConfigError
from metricopt.methods.contract import Method
from metricopt.methods.result import Budget

MORE = 1_000
"""How many more queries are tried to find the least that a method needs."""


def require_queries(method: Method, name: str, budget: Budget, framing: int) -> None:
    """Refuse a call with too few queries for what a method prepares.

    Args:
        method: the method, fitted to the budget.
        name: its name, for the message.
        budget: what it may spend.
        framing: queries of the call outside the method.

    Raises:
        ConfigError: if it needs more queries; the message says how many.
    """
    try:
        method.preparation_key(budget)
    except ConfigError as error:
        given = budget.queries
        for queries in range(given + 1, given + MORE):
            if _is_enough(method, replace(budget, queries=queries)):
                least, got = framing + queries, framing + given
                text = f"{name} needs queries={least} or more, got {got}"
                raise ConfigError(text) from error
        raise


def _is_enough(method: Method, budget: Budget) -> bool:
    try:
        method.preparation_key(budget)
    except ConfigError:
        return False
    return True

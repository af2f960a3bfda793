"""Units that are registered for a while."""

from contextlib import contextmanager


@contextmanager
def registered(registry, name, unit):
    """Register a unit, and remove it at the end."""
    registry.register(name)(unit)
    try:
        yield
    finally:
        del registry._units[name]

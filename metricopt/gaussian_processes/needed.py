"""The check that gpytorch is there, before a method needs it."""

from importlib import import_module


def require_processes() -> None:
    """Raise ConfigError where gpytorch is missing."""
    import_module("metricopt.gaussian_processes.over_time")

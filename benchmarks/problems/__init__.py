"""Pipelines: a problem with its network, as the suite runs it."""

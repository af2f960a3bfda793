"""Experiments, one table or figure per file."""

"""Experiments whose result is a figure of a paper."""

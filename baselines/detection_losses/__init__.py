"""Losses of the regions of a detector."""

"""Data sets of objects in images."""

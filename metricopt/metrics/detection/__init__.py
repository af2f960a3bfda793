"""Metrics of detected objects."""

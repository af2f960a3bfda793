"""Decisions moved after training: thresholds and class offsets."""

"""Evaluation metrics, one per file; `METRICS` knows them by name."""

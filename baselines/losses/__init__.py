"""Surrogate losses, one per file: `(outputs [N, C], targets [N]) -> scalar`."""

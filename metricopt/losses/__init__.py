"""Surrogate losses: what phi can be fine-tuned with at no query."""

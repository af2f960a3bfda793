"""Embedding networks theta, for retrieval."""

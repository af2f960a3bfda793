"""Losses of embeddings, for retrieval: one a file."""

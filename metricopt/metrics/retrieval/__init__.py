"""Metrics of embeddings that are compared with each other, by cosine."""

"""Optimisers of the weights of a network."""

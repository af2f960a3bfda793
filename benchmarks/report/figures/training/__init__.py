"""Figures of methods that train a network."""

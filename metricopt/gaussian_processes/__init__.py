"""Gaussian processes, which need gpytorch; no registry walks this folder."""

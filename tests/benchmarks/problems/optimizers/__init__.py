"""Tests of optimizers that are meta-trained before any run."""

"""Optimizers of phi, meta-trained before any run on fine-tunings of a network."""

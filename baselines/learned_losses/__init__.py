"""Losses that are learned during training, and the models that learn them."""

"""Experiments on methods that learn the loss, from ALA and ReLoss."""

"""Photographs in a folder for every class, as those of ImageNet are."""

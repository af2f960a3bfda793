"""What a surrogate of ReLoss is, for one form of outputs a file."""

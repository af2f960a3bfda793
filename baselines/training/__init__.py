"""The training loop of every method that trains a whole network."""

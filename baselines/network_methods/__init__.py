"""Methods that train a whole network, and the training loop they share."""

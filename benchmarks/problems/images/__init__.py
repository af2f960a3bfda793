"""Images: a convolutional network with FiLM."""

"""Methods that train a whole network, one in a file."""

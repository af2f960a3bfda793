"""Meta-training that survives a kill: its state on disk, and the loop that saves it."""

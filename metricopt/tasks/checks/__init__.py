"""What is checked before the first query: reading, the first run, the loss."""

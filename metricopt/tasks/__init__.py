"""Tasks: what a method works against, and the examples they are made of."""

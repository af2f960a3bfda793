"""Answers that have structure, and the outputs of networks that give them."""

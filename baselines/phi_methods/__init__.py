"""Rival methods that choose phi with few queries, one per file."""

"""Losses that methods learn while a network trains, and what they learn them by."""

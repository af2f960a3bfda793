"""Adapters: a frozen network theta with a few parameters phi."""

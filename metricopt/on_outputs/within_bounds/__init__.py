"""The search under bounds: their value functions, the choice within them, the front."""

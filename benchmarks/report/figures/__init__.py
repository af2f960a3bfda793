"""Figures made from records."""

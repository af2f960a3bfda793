"""Data sets of translation: sentences with their translations."""

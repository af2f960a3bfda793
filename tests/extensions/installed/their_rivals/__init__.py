"""A package that entry points name."""

"""Data sets, one per file. The registry `DATASETS` finds them by name."""

"""Running: processes, preparation, kill test."""

"""Methods that choose phi for any task, one per file; `METHODS` knows them by name."""

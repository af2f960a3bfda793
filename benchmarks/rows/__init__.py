"""The rows of all tables, a family a file: how each is run, shown and compared."""

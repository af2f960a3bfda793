"""Arms: the ways to fill a row of a table."""

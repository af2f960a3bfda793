"""A static site of the records: one page a table, a run, the claims and the methods."""

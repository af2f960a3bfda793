"""What one process has: seeds, global random state, threads."""

"""The verbs of the command line, one per file: `run(options)` returns an exit code."""

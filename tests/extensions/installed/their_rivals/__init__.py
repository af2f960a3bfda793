"""A package that an entry point names; `list` must not import it."""

import sys

print("their_rivals is imported", file=sys.stderr)

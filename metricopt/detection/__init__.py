"""Detection of objects: boxes, what is right of them, and curves of precision."""

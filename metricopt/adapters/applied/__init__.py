"""A network into which an adapter is put."""

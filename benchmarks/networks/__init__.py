"""Networks theta, one per file."""

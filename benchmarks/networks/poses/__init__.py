"""Networks that answer with heat maps of joints."""

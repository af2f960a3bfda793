"""Binary problems on tables: an MLP with dynamic input biases."""

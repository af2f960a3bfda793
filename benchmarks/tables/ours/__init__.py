"""Tables that no paper has: when it pays, whether it harms, what is identified."""

"""What a metric can depend on: numbers of outputs and labels, exact and smooth."""

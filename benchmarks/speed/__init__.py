"""What is timed, side by side."""

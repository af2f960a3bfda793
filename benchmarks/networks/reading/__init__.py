"""Networks that read: scores of where an answer begins and ends."""

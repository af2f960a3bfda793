"""Tables: problems by metrics by rows, with the paper's numbers and notes."""

"""Data sets of people with the joints of each."""

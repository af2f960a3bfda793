"""Data sets of reading comprehension: questions whose answers stand in a paragraph."""

"""Data sets of photographs, listed as Stanford Online Products lists them."""

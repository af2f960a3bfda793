"""Classifiers of scikit-learn on tables, of which only the outputs are moved."""

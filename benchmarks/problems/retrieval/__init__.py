"""Retrieval: an embedding network with FiLM, judged on classes it never saw."""

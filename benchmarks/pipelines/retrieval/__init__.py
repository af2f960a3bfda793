"""Image retrieval: an embedding network with FiLM."""

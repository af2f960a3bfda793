"""The protocols: networks, problems and sizes of every tier, for each pipeline."""

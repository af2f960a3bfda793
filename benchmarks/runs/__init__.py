"""What is run and what happened: specs, records, stores, artifacts."""

"""Parts of a report beside its main tables."""

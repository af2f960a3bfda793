"""Networks that were there before a run: trained once, kept, released, found."""

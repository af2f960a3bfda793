"""Networks that translate, all places of a sentence at once."""

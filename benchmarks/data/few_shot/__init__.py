"""Images of many classes, a few of each, for few-shot learning."""

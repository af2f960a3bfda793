"""What must not go wrong on anyone's model, data and disk."""

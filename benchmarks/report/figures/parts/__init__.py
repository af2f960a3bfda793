"""What figures are made of: looks, panels, points."""

"""Tables of papers whose methods learn the loss: ALA and ReLoss."""

"""What the outputs of a network mean, decided once for everybody who reads them."""

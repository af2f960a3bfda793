"""Value functions: how they are made, trained, checked and followed."""

"""Classes of photographs: ImageNet, parts of it, and CIFAR-10 by the same code."""

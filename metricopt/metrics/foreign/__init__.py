"""Metrics of scikit-learn and torchmetrics, which get what each of them expects."""

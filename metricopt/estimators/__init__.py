"""What the estimators of `metricopt.sklearn` are made of."""

"""metricopt."""

"""MetricOpt on outputs: the search, and the cross-fitting it ends with."""

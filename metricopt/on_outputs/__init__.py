"""MetricOpt on outputs, our method: which idea is in which file.

the method, start to end       `metricopt_outputs`
search: what to query next     `search`; directions of phi `coordinates`
value function of statistics   `statistics_value`; which of them count `explained`
portfolio of losses            `snapshots`; as a method alone `portfolio`
cross-fitting: how far to go   `cross_fitting`, `looks` on the way; what may move
`reach`; parts of the examples `folds`
no harm: evidence, or phi = 0  `conclusion`; where it takes queries `fold_check`
no harm around other methods   `no_harm`
hand-over to CMA-ES            `handed_over`, where no statistics explain the metric
"""

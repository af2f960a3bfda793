"""MetricOpt on outputs, our method: which idea is in which file.

the method, start to end       `metricopt_outputs`
search: what to query next     `search`; what phi may move, and how far `coordinates`
value function of statistics   `statistics_value`
portfolio of losses            `snapshots`; as a method alone `portfolio`
cross-fitting: how far to go   `cross_fitting`; `looks` on the way, by `folds`
bounds on other metrics        `within_bounds`
no harm: evidence, or phi = 0  `conclusion`; where it takes queries `folds`
no harm around other methods   `no_harm`
exact search of offsets        `exact_offsets`; the candidates of anybody `obvious`
hand-over to CMA-ES            `handed_over`, where no statistics explain the metric
"""

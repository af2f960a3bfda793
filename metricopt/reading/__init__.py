"""What reads a stranger's model, data, loss and metric.

forms of inputs                `inputs`
forms of outputs and targets   `outputs`
meaning of outputs             `meaning`; how it is decided `decision`
data sets, loaders, pairs      `examples`
refusals before any query      `network`, `first_run`, `targets`, `loss`, `metric`
a metric of any form           `callables`
metrics of other packages      `scikit_learn`, `torch_metrics`; what they expect
`expected`, what they are given `as_given`
warnings with a result         `doubts`
"""

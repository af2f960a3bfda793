"""What reads a stranger's model, data, loss and metric.

forms of inputs                `inputs`
forms of outputs and targets   `outputs`
meaning of outputs             `meaning`
data sets, loaders, pairs      `examples`
refusals before any query      `network`, `loss`, `metric`, with its doubts later
a metric of any form           `callables`
metrics of other packages      `other_packages`; what they expect `expected`
"""

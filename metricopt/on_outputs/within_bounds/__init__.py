"""The end of a search under bounds on other metrics: which idea is in which file.

value function of all metrics     `value`
other examples, probabilities     `held`
the choice within bounds          `choice`; of output offsets, the margin `offsets`
thresholds, all that are tried    `sweeps`
Pareto front                      `front`
what is said of a choice          `verdict`
"""

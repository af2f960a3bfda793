"""Algorithm S1 (Huang et al., CVPR 2021, supplement B): the fully learned MetricOpt.

1      initialise both       `joint_training.JointTraining`
2, 8   loop over tasks       `metricopt.learned_optimizers`' `train_optimizer`
3      run, K queries        `task_runs.observed_run`
4      dense interpolation   `metricopt.algorithm1`'s `interpolation`
5, 7   value function        `joint_training.ValueTraining`
6      optimizer, eq. (7)    `metricopt.learned_optimizers`' `meta_gradient`
       another supervision   `supervision.statistics_cost`
10-14  a new task            `metricopt_learned.MetricOptLearned.run`
"""

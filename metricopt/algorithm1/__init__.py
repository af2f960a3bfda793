"""Algorithm 1 of the paper (Huang et al., CVPR 2021), a step a file.

    input  tasks, alpha, eta      `recipe.Recipe`; within a budget `meta_preparation`
    input  P, s^2, k              `optimizer.Guidance`
     1     initialise f           `value_function.ValueFunction`
     2, 7  loop over tasks        `meta_training.MetaTraining`
     3     trajectory, K queries  `trajectories.collect`
     4     dense interpolation    `interpolation.Interpolator`
     5     inner step on eq. (2)  `objective.objective`, `objective.mine`
     6     Reptile update         `meta_training.interpolate_weights`
     8     return the weights     `recipe.MetaTrained`
     9     initialise phi         `metricopt.tasks.descent.starts`
    10, 15 loop over steps        `metricopt.tasks.descent.run`
    11     Sigma, eq. (3)         `optimizer.subspace_basis`, `search_covariance`
    12     P perturbations        `optimizer.sample_perturbations`
    13     direction, eq. (4)     `optimizer.descent_estimate`
    14     step on u_t            `optimizer.MetricOptimizer.step`; its length alpha_t:
                                  `step_choice`
    16     return phi             `guided_method.GuidedMethod.run`,
                                  `metricopt_literal.LiteralMetricOpt.run`

`metricopt` takes the steps of line 14 in phi; `metricopt_mirror`, an extra, in a
geometry that `mirror_training` learns for eq. (6).
Eq. (2) is `objective.value_loss`, the sum of `regression_term` and `ordinal_term`.
`health` asks whether a value function can be trusted, see the paper's Fig. 3 (b).
"""

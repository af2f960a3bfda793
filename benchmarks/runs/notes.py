"""Names of what runs of meta-trained arms note, and reports show."""

TASK_DIVERGED = "task-diverged"
"""Name of the metric that is 1 for every new task that diverged."""
META_PARAMETERS = "meta_parameters"
TRAINED_STEPS = "trained_steps"
"""Inner steps of the meta-training."""
INNER_STEPS = "inner_steps"
SUPPORT_LOSS, GRADIENT_NORM = "inner_support_loss", "inner_gradient_norm"
"""Lists over the inner steps: medians over new tasks."""
QUERY_STEPS, QUERY_ACCURACY = "inner_query_steps", "inner_query_accuracy"
"""Some inner steps, and the mean accuracy on queries after them."""
META_STEPS = "meta_training_steps"
"""Gradient steps of all runs of the meta-training of an optimizer."""
SURFACE = "surface"
"""Loss and metric on a plane through solutions, and on the way to each of them."""
SURFACES, SURFACE_SIDE, SURFACE_RADIUS = "course_surfaces", 9, 1.0
"""Cross-entropy of a network in training on square grids around its weights, flat, at
equal distances in epochs; points along each direction, and its ends, in norms of the
filters."""

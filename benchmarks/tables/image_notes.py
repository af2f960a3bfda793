"""What tables on images have in common: budgets of comparisons, and notes."""

from benchmarks.problems.problem import FinetuningSize

RECIPE_NOTE = (
    "MetricOpt replays earlier tasks and takes shorter steps than on A9A, because the "
    "recipe of A9A had made the error worse on observe and on test. Both changes were "
    "chosen for worst-class error on observe only: one half was queried, the other "
    "half judged. Later, at tier local, candidate step lengths were added because "
    "observe had chosen the longest one; the test results of the smaller set had been "
    "seen by then."
)
SIZE_NOTE = (
    "Tier local: T = 100 and K = 5; the paper has T = 200 and K = 10. Fine-tuning "
    "takes its gradients on 10,000 training images without augmentation, so everything "
    "before FiLM is computed only once."
)
OFFSETS_NOTE = (
    "Rows from prior correction on search FiLM with an offset for every output, but "
    "for the one that says it has none. MetricOpt on outputs is run with five seeds."
)


def query_budgets(size: FinetuningSize) -> tuple[int, ...]:
    """Return the numbers of queries at which arms are compared."""
    return (*(q for q in (50, 150, 500, 1_500) if q < size.queries), size.queries)

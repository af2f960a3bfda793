"""A regressor of scikit-learn whose predictions are scaled and shifted for a metric."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite, column_or_1d, indexable
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from metricopt.estimators.label_metrics import Array, LabelMetric, Make
from metricopt.estimators.metric_tuned import MetricTuned, cut
from metricopt.metrics.constrained import Bound
from metricopt.reading.callables import name_of
from metricopt.reading.meaning import Kind
from metricopt.reading.metric import are_amounts
from metricopt.reading.outputs import VALUES


class MetricTunedRegressor(RegressorMixin, MetricTuned):
    """A regressor whose predicted values get a scale and a shift, chosen for a metric.

    `fit` collects predictions of examples the regressor was not trained on, finds both
    with a few evaluations of the metric, and trains the regressor on all examples. The
    scale is 1 and the shift 0 unless there is evidence of a gain on other data. Where
    the metric takes no negative predictions, as errors of logarithms and deviances of
    Poisson and gamma, and there are none, both are those of logarithms; its name, or
    `options={"outputs": "amounts"}`, says so.

    Args:
        estimator: a regressor of one value.
        metric: the name of a scorer of scikit-learn; a scorer, a function of
            `sklearn.metrics`, or any function of (y_true, y_pred). A function of your
            own needs `options={"higher_is_better": ...}`.
        cv: number of folds, a splitter or splits; None for 5 folds. A number in (0, 1)
            is the share of one held-out part. "prefit" if the estimator is fitted, on
            other examples than `fit` gets.
        constraints: bounds on further metrics, `metricopt.at_least(metric, value)` and
            `at_most(metric, value)`; their metrics are as above.
        queries: most evaluations of the metric.
        options: further settings of `metricopt.tune` by name, such as `seed`, which is
            0 by default, or `outputs`, "values" or "amounts".

    Attributes:
        estimator_: the fitted regressor.
        scale_: what its predictions, or their logarithms, are multiplied by.
        shift_: what is added then.
        logarithms_: whether both are of logarithms, so that predictions stay positive.
        expected_: gain to expect on other data, with its interval; None without one.
        metric_before_: metric of the predictions both were chosen on, as they are.
        metric_after_: the same with scale and shift.
        n_queries_: evaluations of the metric.
        report_: a few plain lines: what was gained, and what was spent for it.
    """

    kind: ClassVar[Kind] = "values"
    kinds: ClassVar[tuple[Kind, ...]] = VALUES
    # Only the estimator and scorers request weights.
    __metadata_request__fit: ClassVar = {"sample_weight": UNUSED}

    def __init__(
        self,
        estimator: Any,
        metric: Any = "neg_mean_absolute_error",
        *,
        cv: Any = None,
        constraints: Sequence[Bound] | None = None,
        queries: int = 15,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            estimator,
            metric,
            cv=cv,
            constraints=constraints,
            queries=queries,
            options=options,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:  # noqa: N803
        """Train the regressor and choose scale and shift.

        Args:
            X: examples, [N, ...], in any form that the regressor takes.
            y: true values, shape [N].
            sample_weight: weights of examples, for the regressor and for a metric that
                takes them; see `params` for metadata routing.
            **params: further values of the examples, for metrics by the names of their
                parameters; with metadata routing, for whoever requests them, and for
                functions by the names of their parameters. Where the splitter gets
                `groups`, or `fit` does with cv="prefit", the gain is estimated for new
                groups if ten or more are held out; up to ten that a metric gets, too,
                are no new ones.

        Raises:
            ValueError: if true or predicted values are not one number for each example,
                or somebody cannot take what is given.
            ConfigError: if a setting is not valid.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None"
            )
        X, y = indexable(X, y)  # noqa: N806
        y = column_or_1d(y, warn=True, dtype=float)
        assert_all_finite(y, input_name="y")
        routed = self._routed({**params, "sample_weight": sample_weight})
        held = self._held_out(X, y, routed)
        columns = cut(routed.columns, held.places)
        found = self._tuned(held, y[held.places], routed, columns)
        scales = found.scales
        self.scale_ = 1.0 if scales is None else float(scales[0])
        self.shift_ = float(found.offsets[0])
        self.logarithms_ = found.found.meaning.kind == "amounts"
        self._adopted(found)
        self._say_of_groups(held)
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the scaled and shifted prediction of every example, shape [N]."""
        check_is_fitted(self, "shift_")
        values = self._outputs(self.estimator_, X)
        if not self.logarithms_:
            return values * self.scale_ + self.shift_
        positive = values > 0  # others have no logarithm, and stay
        logarithms = np.log(values, out=np.zeros_like(values), where=positive)
        moved = np.exp(logarithms * self.scale_ + self.shift_)
        return np.where(positive, moved, values)

    def _outputs(self, fitted: Any, X: Any) -> Array:  # noqa: N803
        """Return predicted values, [N]."""
        found = np.asarray(fitted.predict(X), dtype=float)
        if found.shape not in ((len(found),), (len(found), 1)):
            raise ValueError(
                "the regressor must predict one value for each example, got shape "
                f"{list(found.shape)}"
            )
        return found.reshape(-1)

    def _read_as(self, outputs: Array, targets: Array) -> Kind:
        asked = (self.metric, *(bound.metric for bound in self.constraints or ()))
        names = [name_of(metric) for metric in asked]
        return "amounts" if are_amounts(outputs, targets, names) else self.kind

    def _metric(self, scored: LabelMetric) -> Make:
        return scored.of_values

"""What every metric of scikit-learn and torchmetrics expects, written by hand.

The letters are kinds of outputs and targets on which a metric is a number:
b: two classes, c: ten classes, s: several labels, v: one number, w: two numbers.
On any other kind it has to be refused.
"""

from functools import cache

import torch
from torch import nn

from metricopt.reading.callables import make_metric
from metricopt.reading.meaning import meaning_of
from metricopt.tasks.judge import bound_metric
from tests.robustness.heads import FLAT, HEADS, Head, flat, network, vectors

# Name, what it is given, and where it is right. Without a letter it gives several
# numbers, or needs more than predictions and targets.
_SKLEARN = {
    ("decisions", "bc"): "hinge_loss",
    ("labels", ""): (
        "class_likelihood_ratios classification_report confusion_matrix fbeta_score "
        "multilabel_confusion_matrix precision_recall_fscore_support"
    ),
    ("labels", "b"): "f1_score jaccard_score precision_score recall_score",
    ("labels", "bc"): "balanced_accuracy_score cohen_kappa_score matthews_corrcoef",
    ("labels", "bcs"): "accuracy_score hamming_loss zero_one_loss",
    ("scores", ""): (
        "confusion_matrix_at_thresholds det_curve metric_at_thresholds "
        "precision_recall_curve roc_curve"
    ),
    ("scores", "bc"): (
        "brier_score_loss d2_brier_score d2_log_loss_score log_loss "
        "top_k_accuracy_score"
    ),
    ("scores", "bcs"): "average_precision_score",
    ("scores", "bs"): "roc_auc_score",
    ("scores", "s"): (
        "coverage_error label_ranking_average_precision_score label_ranking_loss"
    ),
    ("scores", "sw"): "dcg_score ndcg_score",
    ("scores", "v"): (
        "d2_tweedie_score max_error mean_gamma_deviance mean_poisson_deviance "
        "mean_tweedie_deviance"
    ),
    ("scores", "vw"): (
        "d2_absolute_error_score d2_pinball_score explained_variance_score "
        "mean_absolute_error mean_absolute_percentage_error mean_pinball_loss "
        "mean_squared_error mean_squared_log_error median_absolute_error r2_score "
        "root_mean_squared_error root_mean_squared_log_error"
    ),
}
SKLEARN = {name: row for row, names in _SKLEARN.items() for name in names.split()}
# Functions with arguments, given by `functools.partial`.
SKLEARN_WITH = (
    ("accuracy_score", {"normalize": False}, "bcs"),
    ("average_precision_score", {"average": "micro"}, "bcs"),
    ("average_precision_score", {"average": "weighted"}, "bcs"),
    ("balanced_accuracy_score", {"adjusted": True}, "bc"),
    ("brier_score_loss", {"scale_by_half": False}, "bc"),
    ("cohen_kappa_score", {"weights": "quadratic"}, "bc"),
    ("confusion_matrix", {"normalize": "all"}, ""),
    ("d2_pinball_score", {"alpha": 0.8}, "vw"),
    ("d2_tweedie_score", {"power": 1.5}, "v"),
    ("dcg_score", {"k": 1, "ignore_ties": True}, "sw"),
    ("explained_variance_score", {"multioutput": "variance_weighted"}, "vw"),
    ("f1_score", {"average": None}, ""),
    ("f1_score", {"average": "macro"}, "bcs"),
    ("f1_score", {"average": "samples"}, "s"),
    ("fbeta_score", {"beta": 2.0}, "b"),
    ("fbeta_score", {"beta": 0.5, "average": "weighted"}, "bcs"),
    ("jaccard_score", {"average": "macro"}, "bcs"),
    ("log_loss", {"normalize": False}, "bc"),
    ("log_loss", {"labels": [*range(10)]}, "c"),
    ("mean_absolute_error", {"multioutput": [0.3, 0.7]}, "w"),
    ("mean_pinball_loss", {"alpha": 0.9}, "vw"),
    ("mean_squared_error", {"multioutput": "raw_values"}, "v"),
    ("mean_tweedie_deviance", {"power": 1.5}, "v"),
    ("ndcg_score", {"k": 1}, "sw"),
    ("precision_score", {"average": "micro"}, "bcs"),
    ("precision_score", {"pos_label": 0}, "b"),
    ("r2_score", {"multioutput": "variance_weighted"}, "vw"),
    ("recall_score", {"average": "weighted"}, "bcs"),
    ("roc_auc_score", {"average": "micro"}, "bs"),
    ("roc_auc_score", {"max_fpr": 0.5}, "bs"),
    ("roc_auc_score", {"multi_class": "ovo"}, "bcs"),
    ("roc_auc_score", {"multi_class": "ovr", "average": "weighted"}, "bcs"),
    ("top_k_accuracy_score", {"k": 1}, "bc"),
    ("top_k_accuracy_score", {"k": 3, "normalize": False}, "bc"),
    ("zero_one_loss", {"normalize": False}, "bcs"),
)
SKLEARN_LOWER = {
    *("brier_score_loss", "coverage_error", "hamming_loss", "hinge_loss"),
    *("label_ranking_loss", "log_loss", "max_error", "mean_absolute_error"),
    *("mean_absolute_percentage_error", "mean_gamma_deviance", "mean_pinball_loss"),
    *("mean_poisson_deviance", "mean_squared_error", "mean_squared_log_error"),
    *("mean_tweedie_deviance", "median_absolute_error", "root_mean_squared_error"),
    *("root_mean_squared_log_error", "zero_one_loss"),
}
# Of clusters, distances, curves or scorers.
SKLEARN_OTHERS = {
    *("adjusted_mutual_info_score", "adjusted_rand_score", "auc"),
    *("calinski_harabasz_score", "check_scoring", "completeness_score"),
    *("consensus_score", "davies_bouldin_score", "euclidean_distances"),
    *("fowlkes_mallows_score", "get_scorer", "get_scorer_names"),
    *("homogeneity_completeness_v_measure", "homogeneity_score", "make_scorer"),
    *("mutual_info_score", "nan_euclidean_distances", "normalized_mutual_info_score"),
    *("pair_confusion_matrix", "pairwise_distances", "pairwise_distances_argmin"),
    *("pairwise_distances_argmin_min", "pairwise_distances_chunked"),
    *("pairwise_kernels", "rand_score", "silhouette_samples", "silhouette_score"),
    "v_measure_score",
}


def _pairs(text):
    """Return what each name stands for, from `name=meaning`, with spaces between."""
    return dict(pair.split("=") for pair in text.split())


# Classes of torchmetrics.classification without Binary, Multiclass or Multilabel, and
# their functions.
TORCH = _pairs(
    "Accuracy=accuracy AUROC=auroc AveragePrecision=average_precision "
    "CalibrationError=calibration_error CohenKappa=cohen_kappa "
    "CoverageError=coverage_error EER=eer ExactMatch=exact_match F1Score=f1_score "
    "FBetaScore=fbeta_score HammingDistance=hamming_distance HingeLoss=hinge_loss "
    "JaccardIndex=jaccard_index LogAUC=logauc MatthewsCorrCoef=matthews_corrcoef "
    "NegativePredictiveValue=negative_predictive_value Precision=precision "
    "RankingAveragePrecision=ranking_average_precision RankingLoss=ranking_loss "
    "Recall=recall Specificity=specificity"
)
TORCH_NO_NUMBER = _pairs(
    "ConfusionMatrix=confusion_matrix PrecisionRecallCurve=precision_recall_curve "
    "ROC=roc StatScores=stat_scores"
)
# They give a value and its threshold, of two classes; else a value for every class.
TORCH_FIXED = _pairs(
    "PrecisionAtFixedRecall=precision_at_fixed_recall "
    "RecallAtFixedPrecision=recall_at_fixed_precision "
    "SensitivityAtSpecificity=sensitivity_at_specificity "
    "SpecificityAtSensitivity=specificity_at_sensitivity"
)
# They compare groups of examples, which are a third argument.
TORCH_GROUPS = {
    "BinaryFairness": "binary_fairness",
    "BinaryGroupStatRates": "binary_groups_stat_rates",
}
TORCH_GROUP_FUNCTIONS = {"demographic_parity", "equal_opportunity"}
# Where each task is right: with one probability, one for every class or every label.
TORCH_RIGHT = {"Binary": "bs", "Multiclass": "bc", "Multilabel": "s"}
# It has no average over labels.
TORCH_RIGHT_EXCEPT = {"MultilabelEER": ""}
TORCH_WITH = {
    "FBetaScore": {"beta": 2.0},
    "PrecisionAtFixedRecall": {"min_recall": 0.5},
    "RecallAtFixedPrecision": {"min_precision": 0.5},
    "SensitivityAtSpecificity": {"min_specificity": 0.5},
    "SpecificityAtSensitivity": {"min_sensitivity": 0.5},
    "MulticlassEER": {"average": "macro", "thresholds": 9},
    "MulticlassLogAUC": {"average": "macro"},
    "MultilabelLogAUC": {"average": "macro"},
}
# Class, function, arguments, and where it is right.
_TORCH_REGRESSION = {
    "v": _pairs(
        "ConcordanceCorrCoef=concordance_corrcoef "
        "KendallRankCorrCoef=kendall_rank_corrcoef LogCoshError=log_cosh_error "
        "PearsonCorrCoef=pearson_corrcoef SpearmanCorrCoef=spearman_corrcoef"
    ),
    "": _pairs(
        "ContinuousRankedProbabilityScore=continuous_ranked_probability_score "
        "JensenShannonDivergence=jensen_shannon_divergence KLDivergence=kl_divergence"
    ),
    "vw": _pairs(
        "ExplainedVariance=explained_variance MeanAbsoluteError=mean_absolute_error "
        "MeanAbsolutePercentageError=mean_absolute_percentage_error "
        "MeanSquaredError=mean_squared_error "
        "MeanSquaredLogError=mean_squared_log_error "
        "NormalizedRootMeanSquaredError=normalized_root_mean_squared_error "
        "R2Score=r2_score RelativeSquaredError=relative_squared_error "
        "SymmetricMeanAbsolutePercentageError=symmetric_mean_absolute_percentage_error "
        "TweedieDevianceScore=tweedie_deviance_score "
        "WeightedMeanAbsolutePercentageError=weighted_mean_absolute_percentage_error"
    ),
}
TORCH_REGRESSION = {
    name: (function, {}, right)
    for right, pairs in _TORCH_REGRESSION.items()
    for name, function in pairs.items()
} | {
    "CosineSimilarity": ("cosine_similarity", {"reduction": "mean"}, "w"),
    "CriticalSuccessIndex": ("critical_success_index", {"threshold": 1.0}, "vw"),
    "MinkowskiDistance": ("minkowski_distance", {"p": 3.0}, "vw"),
}
# A class that has to be told how many numbers there are, unlike its function.
TORCH_NUM_OUTPUTS = {"RelativeSquaredError": {"w": 2}}


WIDE = {"higher_is_better": True, "low": -1e5, "high": 1e5}
POSITIVE = nn.Softplus()


class TwoNumbers(Head):
    """Predicts two positive numbers for each example."""

    def problem(self):
        inputs, targets = vectors("diabetes")
        pairs = torch.stack([targets, targets.flip(0)], 1)
        return network(inputs.shape[1], 2, *self.layers), inputs, pairs


def _double(returned):
    return returned.detach().double()


MSE = nn.MSELoss()
CASES = {
    name: HEADS[name]
    for name in ("one logit", "flat logit", "two logits", "logits", "several logits")
} | {
    # Some functions of regression are defined for positive numbers only.
    "number": Head(1, (POSITIVE,), MSE, None, flat, "diabetes", True, True),
    "flat number": Head(
        1, (POSITIVE, FLAT), MSE, None, flat, "diabetes", floating=True
    ),
    "two numbers": TwoNumbers(2, (POSITIVE,), MSE, None, _double),
}
KINDS = {
    "b": ("one logit", "flat logit", "two logits"),
    "c": ("logits",),
    "s": ("several logits",),
    "v": ("number", "flat number"),
    "w": ("two numbers",),
}
BY_KIND = [(kind, case) for kind, cases in KINDS.items() for case in cases]
MARGINS = {
    "one logit": flat,
    "flat logit": flat,
    "two logits": lambda returned: _double(returned)[:, 1] - _double(returned)[:, 0],
    "logits": _double,
}


@cache
def returned(case):
    """Outputs of the network of a case and their targets, as its loss takes them."""
    model, inputs, targets = CASES[case].problem()
    return model(inputs).detach(), targets


def measured(spec, case, *, only=slice(None)):
    """The value of a metric, by the library."""
    outputs, targets = (part[only] for part in returned(case))
    meaning = meaning_of(outputs, targets, loss=CASES[case].loss)
    metric = bound_metric(make_metric(spec, **WIDE), meaning)
    columns = outputs[:, None] if outputs.ndim == 1 else outputs
    return metric.value(meaning.inward(columns), meaning.inward_targets(targets))


def prepared(expects, case, *, only=slice(None)):
    """What a metric has to be given: predictions and targets."""
    head = CASES[case]
    outputs, targets = (part[only] for part in returned(case))
    reads = {"labels": head.decided, "scores": head.scores}
    read = MARGINS[case] if expects == "decisions" else reads[expects]
    if case not in ("several logits", "two numbers"):
        targets = targets.flatten()
    truth = targets.double() if head.decided is None else targets.long()
    return read(outputs), truth


def every_class(case):
    """Probabilities of both classes where there are two, and of all else."""
    scores, truth = prepared("scores", case)
    return (torch.stack([1 - scores, scores], 1) if scores.ndim == 1 else scores), truth

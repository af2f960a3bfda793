"""Pairwise AUC-ROC loss, which the library has."""

from baselines.losses.contract import LOSSES
from metricopt.losses.portfolio import PairwiseAUCROC

LOSSES.register("pairwise-aucroc")(PairwiseAUCROC)

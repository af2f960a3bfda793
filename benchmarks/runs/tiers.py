"""The sizes of an experiment. Nothing here needs metricopt, see `paths`."""

TIERS = ("paper", "local", "smoke")

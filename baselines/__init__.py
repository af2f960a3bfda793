"""The methods MetricOpt is compared with, one file each."""

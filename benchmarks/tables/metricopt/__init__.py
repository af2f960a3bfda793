"""Tables and figures of MetricOpt (Huang et al., CVPR 2021)."""

"""Answers of the metric on disk, so that no query is asked twice."""

"""Metrics of the evaluating APIs."""

from prometheus_client import Counter

EVALUATIONS = Counter("flagadmin_evaluations_total", "Flags evaluated for a context, by API.", ["api"])

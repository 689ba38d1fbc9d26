"""Metrics of how much the evaluating APIs evaluate."""

from prometheus_client import Counter

EVALUATIONS = Counter("flagadmin_evaluations_total", "Flags evaluated for a context, by API.", ["api"])

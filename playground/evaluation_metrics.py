"""How much is evaluated for the APIs that answer what a context gets."""

from prometheus_client import Counter

EVALUATIONS = Counter("flagadmin_evaluations_total", "Flags evaluated for a context, by API.", ["api"])

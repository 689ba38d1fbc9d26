"""What the server counts, for Prometheus. An instrument is declared beside the code that counts:

    IMPORTS = Counter("flagadmin_imports_total", "Imports.", "result")
    IMPORTS.inc("refused")

It does nothing unless FLAGADMIN_METRICS_TOKEN is set: then `serve` and its workers attach themselves.
"""

from flagadmin.metrics.instruments import Counter, Gauge, Histogram, sampled

__all__ = ["Counter", "Gauge", "Histogram", "sampled"]

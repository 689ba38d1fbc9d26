"""Metrics for Prometheus. Instruments are prometheus_client's, declared beside the code that counts:

    IMPORTS = Counter("flagadmin_imports_total", "Imports.", ["result"])
    IMPORTS.labels("refused").inc()

The values of labels must be few: each combination is kept for good. A gauge has a label `process`, as each process has
its own (`docs/decisions/metrics.md`).
"""

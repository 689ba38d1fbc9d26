"""Validates the impact metrics of a report one by one, so that an invalid one does not affect the others."""

import math
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import Field

from projects.applications.impact_metrics import HISTOGRAM, Sample, Samples, make_series
from sdk import schemas as wire

MAX_LABEL_LENGTH = 100
MAX_BUCKETS, MAX_SAMPLES = 50, 1000
MAX_NUMBER = 1e100
"""PostgreSQL refuses to add up, and to average, what would leave the range of a float."""

Label = Annotated[str, Field(min_length=1, max_length=MAX_LABEL_LENGTH)]
Number = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]


class Bucket(wire.Body):
    le: Annotated[float, Field(allow_inf_nan=True)]
    count: wire.CountNumber


class SampleBody(wire.Body):
    labels: dict[Label, Annotated[str, Field(max_length=wire.MAX_WORD_LENGTH)]] = Field(
        default_factory=dict, max_length=wire.MAX_LABELS
    )
    value: Number = 0.0
    count: wire.CountNumber = 0
    sum: Number = 0.0
    buckets: list[Bucket] = Field(default_factory=list, max_length=MAX_BUCKETS)


class ImpactMetric(wire.Body):
    """The values that an application has recorded since its last report."""

    name: wire.Name
    help: Annotated[str, Field(max_length=1000)] = ""
    type: Literal["counter", "gauge", "histogram"]
    samples: list[SampleBody] = Field(max_length=MAX_SAMPLES)


def read_samples(metrics: list[Any], environment: str, application: str = "") -> tuple[Samples, int]:
    """The samples by series, and the number of invalid metrics. The environment is that of the token."""
    good, _ = wire.read_each(ImpactMetric, metrics, "impactMetrics")
    samples: Samples = {}
    invalid = len(metrics) - len(good)
    for metric in good:
        for reported in metric.samples:
            sample = _sample(metric, reported)
            if sample is None:
                invalid += 1
                continue
            labels = ({"appName": application} if application else {}) | reported.labels
            series = make_series(metric.name, labels, environment=environment)
            samples[series] = samples[series].add(sample) if series in samples else sample
    return samples, invalid


def _sample(metric: ImpactMetric, reported: SampleBody) -> Sample | None:
    if metric.type == HISTOGRAM:
        bounds = [bucket.le for bucket in reported.buckets]
        if any(map(math.isnan, bounds)) or max(Counter(bounds).values(), default=0) > 1:
            return None
        buckets = {str(bucket.le): bucket.count for bucket in reported.buckets}
        return Sample(metric.type, metric.help, reported.sum, reported.count, buckets)
    if metric.type == "counter" and reported.value < 0:
        return None
    return Sample(metric.type, metric.help, reported.value)

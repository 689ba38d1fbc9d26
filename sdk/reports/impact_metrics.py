"""Validates the impact metrics of a report one by one, so that an invalid one does not affect the others."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from projects.applications.impact_metrics import HISTOGRAM, Origin, Sample, Samples, make_series
from sdk import schemas as wire

MAX_LABEL_LENGTH = 100
MAX_BUCKETS, MAX_SAMPLES = 50, 1000
MAX_SERIES, MAX_PASSED_ON = 1_000, 5_000
"""The maximum number of samples in a report of an SDK, and of a proxy: storing a thousand takes a tenth of a second."""
MAX_NUMBER = 1e100
"""PostgreSQL refuses sums and averages beyond the range of a float."""

Label = Annotated[str, Field(min_length=1, max_length=MAX_LABEL_LENGTH)]
Number = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]


class Bucket(wire.Body):
    le: Annotated[float, Field(allow_inf_nan=True)]
    count: wire.CountNumber


class SampleBody(wire.Body):
    labels: Annotated[
        dict[Label, Annotated[str, Field(max_length=wire.MAX_WORD_LENGTH)]], wire.empty_as(dict)
    ] = Field(default_factory=dict, max_length=wire.MAX_LABELS)
    value: Number = 0.0
    count: wire.CountNumber = 0
    sum: Number = 0.0
    buckets: Annotated[list[Bucket], wire.empty_as(list)] = Field(
        default_factory=list, max_length=MAX_BUCKETS
    )


class ImpactMetric(wire.Body):
    """The values that an application has recorded since its last report."""

    name: wire.Name
    help: Annotated[str, Field(max_length=1000), wire.empty_as(str)] = ""
    type: Literal["counter", "gauge", "histogram"]
    samples: Annotated[list[SampleBody], wire.empty_as(list)] = Field(max_length=MAX_SAMPLES)


class OriginBody(wire.Body):
    """The token with which an SDK reported to a proxy."""

    type: Literal["backend", "frontend"]
    projects: Annotated[list[wire.Name], Field(min_length=1, max_length=500)]


class PassedOn(ImpactMetric):
    origin: OriginBody | None = None


def read_samples(
    metrics: list[Any], environment: str, origin: Origin, application: str
) -> tuple[Samples, int]:
    """The samples of an SDK by series, and the number of ignored metrics and samples.

    The environment and the origin are the token's.
    """
    good, _ = wire.read_each(ImpactMetric, metrics, "impactMetrics")
    reported = [(metric, sample, origin) for metric in good for sample in metric.samples]
    samples, invalid = _add_up(reported[:MAX_SERIES], environment, application)
    return samples, invalid + len(metrics) - len(good) + max(0, len(reported) - MAX_SERIES)


def read_passed_on(metrics: list[Any], environment: str, origin: Origin) -> tuple[Samples, int]:
    """Like `read_samples`, for a proxy, whose metrics each name the token that reported them."""
    good, _ = wire.read_each(PassedOn, metrics, "impactMetrics")
    reported = [
        (
            metric,
            sample,
            origin.narrow(metric.origin.type, metric.origin.projects) if metric.origin else origin,
        )
        for metric in good
        for sample in metric.samples
    ]
    samples, invalid = _add_up(reported[:MAX_PASSED_ON], environment)
    return samples, invalid + len(metrics) - len(good) + max(0, len(reported) - MAX_PASSED_ON)


def _add_up(
    reported: Iterable[tuple[ImpactMetric, SampleBody, Origin]], environment: str, application: str = ""
) -> tuple[Samples, int]:
    samples: Samples = {}
    invalid = 0
    for metric, body, origin in reported:
        sample = _sample(metric, body)
        if sample is None:
            invalid += 1
            continue
        labels = ({"appName": application} if application else {}) | body.labels
        series = make_series(metric.name, labels, origin, environment=environment)
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

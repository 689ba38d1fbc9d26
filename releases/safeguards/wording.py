"""Describes safeguards and charts of impact metrics: what is read, and what must hold."""

from collections.abc import Mapping, Sequence

from releases.models import Safeguard


def describe_safeguard(safeguard: Safeguard) -> str:
    """``avg of errors over an hour, only with appName web-shop, must not be above 3``."""
    if safeguard.source == Safeguard.Source.ALERT:
        return f"alert {safeguard.metric}{describe_labels(safeguard.labels)} must not fire"
    side = "above" if safeguard.operator == ">" else "below"
    limit = f"must not be {side} {safeguard.threshold:g}"
    if safeguard.source == Safeguard.Source.EXTERNAL:
        return f"query {safeguard.metric} {limit}"
    article = "an" if safeguard.time_range == "hour" else "a"
    what = f"{safeguard.aggregation} of {safeguard.metric} over {article} {safeguard.time_range}"
    compared = ", less that of users without the flag," if safeguard.compares else ""
    return f"{what}{describe_labels(safeguard.labels)}{compared} {limit}"


def describe_labels(labels: Mapping[str, Sequence[str]]) -> str:
    """``, only with appName web-shop or app and severity page,``; "" for any."""
    chosen = [f"{name} {' or '.join(values)}" for name, values in sorted(labels.items())]
    return f", only with {' and '.join(chosen)}," if chosen else ""

"""Charts: ``{% load charts %}``. Each is a figure with an SVG and, for screen readers, a table of its numbers.

``title`` names the chart; it must be unique on the page, because ids derive from it.

    {% evaluation_chart hours "Evaluations in production, last 24 hours" %}
    {% share_bar 50 %}
    {% variant_split_chart weights measured "Variants in production" %}
    {% variant_weights weights %}
    {% adoption_chart versions "SDK versions" %}
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.utils.text import slugify

from flagadmin.core.lists import charts

register = template.Library()


@register.inclusion_tag("charts/evaluations.html")
def evaluation_chart(counts: Iterable[charts.Counted], title: str, *, unit: str = "hour") -> dict[str, Any]:
    """Bars of on and off, one for each hour or day. ``counts``: objects with ``at``, ``yes``, ``no``."""
    return {"chart": charts.make_sparkline(counts), "title": title, "id": _make_id(title), "unit": unit}


@register.inclusion_tag("charts/share.html")
def share_bar(percent: float | None) -> dict[str, Any]:
    """A bar of 0 to 100 %. It is decoration: write the number beside it. None draws an empty bar."""
    return {"width": f"{min(max(percent or 0, 0), 100):g}%", "empty": not percent}


@register.inclusion_tag("charts/variant_split.html")
def variant_split_chart(
    weights: Mapping[str, float], measured: Mapping[str, int], title: str
) -> dict[str, Any]:
    """Two bars: variants by configured weight, and by how often SDKs reported them."""
    return {"chart": charts.make_variant_split(weights, measured), "title": title, "id": _make_id(title)}


@register.inclusion_tag("charts/variant_weights.html")
def variant_weights(weights: Mapping[str, float]) -> dict[str, Any]:
    """One bar of variants by weight, with a legend."""
    return {"slices": charts.make_slices(weights)}


@register.inclusion_tag("charts/adoption.html")
def adoption_chart(
    versions: Iterable[tuple[str, int, bool]], title: str, list_url: str = ""
) -> dict[str, Any]:
    """A bar for each version. ``versions``: (name, number of instances, whether it is outdated).

    ``list_url``: the beginning of an address that ``title:version`` completes; each number is then a link.
    """
    return {
        "bars": charts.make_line_bars(versions),
        "title": title,
        "id": _make_id(title),
        "list_url": list_url,
    }


def _make_id(title: str) -> str:
    return f"chart-{slugify(title, allow_unicode=True)}"

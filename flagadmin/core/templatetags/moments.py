"""Template filters for times, shown in the browser's zone with UTC as a tooltip; without JavaScript in UTC.

``{% load moments %}{{ event.created_at|ago }}``, ``|moment``, ``|moment:"second"``, ``|day``, ``|clock``, ``|expiry``
"""

from datetime import UTC, datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince, timeuntil

register = template.Library()
SOON = timedelta(days=14)  # an expiry within this time needs attention

# FORMATS in js/times.js has the same formats for the browser's zone.
FORMATS = {
    "day": "{0.day} {0:%b %Y}",
    "minute": "{0.day} {0:%b %Y, %H:%M} UTC",
    "second": "{0.day} {0:%b %Y, %H:%M:%S} UTC",
    "clock": "{0:%H:%M} UTC",
}


@register.filter
def ago(moment: datetime | None) -> str:
    """``3 minutes ago``; "never" for None."""
    if moment is None:
        return "never"
    now = timezone.now()
    near = abs((now - moment).total_seconds()) < 60
    return _make_time(moment, "ago", "just now" if near else f"{timesince(moment, now, depth=1)} ago")


@register.filter(name="moment")
def exact(moment: datetime | None, precision: str = "minute") -> str:
    """``2 Oct 2026, 08:36 UTC``; "never" for None."""
    return _make_time(moment, precision, _format_moment(moment, precision)) if moment else "never"


@register.filter
def day(moment: datetime | None) -> str:
    """``2 Oct 2026``; "never" for None."""
    return exact(moment, "day")


@register.filter
def expiry(moment: datetime | None) -> str:
    """Describes when a token expires: "never", a day, in amber how soon, or "expired"."""
    if moment is None:
        return "never"
    now = timezone.now()
    if moment > now + SOON:
        return day(moment)
    if moment <= now:
        return format_html('<span class="pill bad">expired</span> {}', day(moment))
    return format_html(
        '<span class="pill warn">in {}</span> {}', timeuntil(moment, now, depth=1), day(moment)
    )


@register.filter
def clock(moment: datetime) -> str:
    """``08:36 UTC``"""
    return exact(moment, "clock")


def _make_time(moment: datetime, kind: str, words: str) -> str:
    return format_html(
        '<time datetime="{}" data-time="{}" title="{}">{}</time>',
        moment.isoformat(),
        kind,
        _format_moment(moment, "second"),
        words,
    )


def _format_moment(moment: datetime, precision: str) -> str:
    return FORMATS[precision].format(moment.astimezone(UTC))

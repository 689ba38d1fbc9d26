"""Template filter for relative times: ``{% load moments %}{{ event.created_at|ago }}``."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince

register = template.Library()


@register.filter
def ago(moment: datetime | None) -> str:
    """``3 minutes ago``, with the exact time as a tooltip; "never" for None."""
    if moment is None:
        return "never"
    now = timezone.now()
    near = abs((now - moment).total_seconds()) < 60
    words = "just now" if near else f"{timesince(moment, now, depth=1)} ago"
    exact = moment.astimezone(timezone.get_current_timezone())
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), f"{exact:%Y-%m-%d %H:%M:%S %Z}", words
    )

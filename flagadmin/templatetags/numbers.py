"""Template filter for numbers: ``{% load numbers %}{{ count|grouped }}``."""

from django import template

register = template.Library()


@register.filter
def grouped(number: int) -> str:
    """The number with thousands separators: ``12,345``."""
    return f"{number:,}"

"""Numbers as people read them: ``{% load numbers %}{{ count|grouped }}``."""

from django import template

register = template.Library()


@register.filter
def grouped(number: int) -> str:
    """``12,345``."""
    return f"{number:,}"

"""Template filters for numbers: ``{% load numbers %}{{ count|grouped }}``, ``{{ count|compact }}``"""

from django import template

from flagadmin.core.errors import format_size

register = template.Library()


@register.filter
def grouped(number: int) -> str:
    """The number with thousands separators: ``12,345``."""
    return f"{number:,}"


@register.filter
def in_bytes(size: int) -> str:
    """``1.4 MB``, ``230 kB``."""
    return format_size(size)


@register.filter
def compact(number: int) -> str:
    """Three digits at most: ``950``, ``12.3 k``, ``4.2 M``."""
    size, unit = next(((size, unit) for size, unit in _UNITS if number >= size * 0.9995), (1, ""))
    value = number / size
    return (
        f"{value:.1f}".removesuffix(".0") + f" {unit}"
        if unit and value < 99.95
        else f"{value:.0f} {unit}".strip()
    )


_UNITS = ((10**9, "G"), (10**6, "M"), (10**3, "k"))

"""Template filters for lists and filters.

``{% load lists %}{{ names|cut|join:", " }}``, ``{{ field|label_of:value }}``
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template

from flagadmin.console import lists as pages

register = template.Library()


@register.filter
def cut(names: Sequence[str], most: int = pages.SHOWN) -> list[str]:
    """The first names, followed by "and 240 more"."""
    return pages.cut(names, most)


@register.filter
def label_of(field: pages.Filter, value: str) -> str:
    return field.label_of(value)


@register.filter
def get(found: Mapping[str, Any], key: str) -> Any:
    """The value of a variable key, None without one."""
    return found.get(key)

"""``{% load policies %}{% change_policy project_id environment as policy %}`` for the buttons of forms.

``{% next_hour %}`` is the time that forms offer for later.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django import template
from django.utils import timezone

from groups.permissions import Permission
from projects.projects.policies import needs_request

register = template.Library()


class ChangePolicy(NamedTuple):
    """Whether a change needs a change request there, and whether the visitor may do without."""

    needs_request: bool
    may_skip: bool


@register.simple_tag(takes_context=True)
def change_policy(context: Mapping[str, Any], project_id: str, environment: str) -> ChangePolicy:
    scope = {"project": project_id, "environment": environment}
    needs = needs_request(project_id, [environment] if environment else None)
    return ChangePolicy(needs, needs and context["caller"].can(Permission.SKIP_CHANGE_REQUEST, **scope))


@register.simple_tag
def next_hour() -> str:
    """The next full hour in UTC, at least half an hour ahead."""
    ahead = timezone.now() + timedelta(minutes=90)
    return f"{ahead.replace(minute=0, second=0):%Y-%m-%dT%H:%M:%S}"

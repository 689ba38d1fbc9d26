"""``{% load policies %}{% change_policy project_id environment as policy %}`` for the buttons of forms.

``{% next_hour %}`` is the default time for scheduling in forms.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django import template
from django.utils import timezone

from groups.permissions import Permission
from projects.projects.queries import needs_request

register = template.Library()


class ChangePolicy(NamedTuple):
    """Whether a change needs a change request there, and whether the visitor may skip it."""

    needs_request: bool
    may_skip: bool


@register.simple_tag(takes_context=True)
def change_policy(context: Mapping[str, Any], project_id: str, environment: str) -> ChangePolicy:
    scope = {"project": project_id, "environment": environment}
    needs = needs_request(project_id, [environment] if environment else None)
    return ChangePolicy(needs, needs and context["caller"].can(Permission.SKIP_CHANGE_REQUEST, **scope))


@register.simple_tag(takes_context=True)
def policy_of_places(context: Mapping[str, Any], places: Iterable[tuple[str, str]]) -> ChangePolicy:
    """The policy of a change in several places, each a project and an environment."""
    needing = [policy for place in places if (policy := change_policy(context, *place)).needs_request]
    return ChangePolicy(bool(needing), bool(needing) and all(policy.may_skip for policy in needing))


@register.simple_tag
def next_hour() -> str:
    """The next full hour in UTC, at least half an hour ahead."""
    ahead = timezone.now() + timedelta(minutes=90)
    return f"{ahead.replace(minute=0, second=0):%Y-%m-%dT%H:%M:%S}"

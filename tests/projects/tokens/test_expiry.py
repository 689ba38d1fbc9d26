"""API tokens are announced 14, 3 and 0 days before they expire, once each, to integrations too."""

from datetime import timedelta

import pytest
from django.utils import timezone

from groups.models import ApiToken
from integrations.providers import PROVIDERS
from projects.tokens.pending import announce_expiring_tokens
from tests.support.cast import make_token
from tests.support.records import events

NAMES = ("later", "weeks", "days", "today", "gone")


def expire(name: str, **left: int) -> None:
    ApiToken.objects.filter(name=name).update(expires_at=timezone.now() + timedelta(**left))


def announced() -> list[tuple[str, int]]:
    announce_expiring_tokens()
    return [(event.subject, event.after["daysLeft"]) for event in events("api-token-expiring")]


@pytest.fixture(autouse=True)
def _tokens(shop) -> None:
    for name in NAMES:
        make_token("backend", projects=["shop"], environment="production", name=name)
    expire("later", days=20)
    expire("weeks", days=14, hours=23)
    expire("days", days=3, hours=1)
    expire("today", hours=5)
    expire("gone", hours=-1)


def test_each_token_is_announced_once_for_each_limit():
    first = [("weeks", 14), ("days", 3), ("today", 0)]
    assert announced() == announced() == first
    [event, *_] = events("api-token-expiring")
    assert (event.project, event.environment, event.actor_id) == ("shop", "production", None)
    expire("weeks", days=2)
    assert announced() == [*first, ("weeks", 3)]


def test_a_renewed_token_is_announced_again():
    announced()
    expire("today", days=40)
    assert len(announced()) == 3
    expire("today", hours=2)
    assert announced()[3:] == [("today", 0)]


def test_integrations_can_send_it():
    offering = {name for name, provider in PROVIDERS.items() if "api-token-expiring" in provider.events}
    assert offering == {"webhook", "slack-app", "slack", "teamsworkflow", "email"}

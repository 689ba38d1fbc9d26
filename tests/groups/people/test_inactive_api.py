"""/api/admin/user-admin/inactive: who has not been seen for half a year."""

from datetime import timedelta

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, User
from tests.support.cast import make_token, make_user

URL = "/api/admin/user-admin/inactive"


def make_person(name, *, created=400, seen=None, token_seen=None, **fields):
    """``created``, ``seen`` and ``token_seen`` are numbers of days ago."""
    user = make_user(name, **fields)
    ago = {days: timezone.now() - timedelta(days=days) for days in (created, seen, token_seen) if days}
    User.objects.filter(pk=user.pk).update(created_at=ago[created], seen_at=ago.get(seen))
    if token_seen:
        make_token("personal", user=user)
        ApiToken.objects.filter(user=user).update(seen_at=ago[token_seen])
    return user


@pytest.fixture
def away(people):
    return make_person("away", seen=200, token_seen=190, email="away@example.org")


def listed(api):
    return [user["username"] for user in api["admin"].get(URL).json()["inactiveUsers"]]


def test_a_fresh_installation_has_none(api, people):
    assert api["admin"].get(URL).json() == {"version": 1, "inactiveUsers": []}


def test_people_not_seen_for_180_days_are_listed(api, away):
    make_person("never seen")
    make_person("logs in", seen=10)
    make_person("uses a token", seen=300, token_seen=3)
    make_person("is new", created=100)
    make_person("a program", is_service=True)
    assert listed(api) == ["away", "never seen"]
    record = api["admin"].get(URL).json()["inactiveUsers"][0]
    assert list(record) == ["id", "name", "username", "email", "seenAt", "createdAt", "patSeenAt"]
    assert (record["id"], record["email"]) == (away.pk, "away@example.org")


def test_inactive_people_are_deleted_together(api, away):
    remaining_person = make_person("kept")
    response = api["admin"].post(f"{URL}/delete", {"ids": [away.pk]})
    assert (response.status_code, response.content) == (200, b"")
    assert listed(api) == [remaining_person.username]
    assert AuditEvent.objects.get(type="user-deleted").subject == "away"


def test_an_active_person_in_the_list_refuses_it(api, people, away):
    response = api["admin"].post(f"{URL}/delete", {"ids": [away.pk, people["viewer"].pk, 999_999]})
    assert response.status_code == 400
    assert [problem["path"] for problem in response.json()["details"]] == ["ids[1]", "ids[2]"]
    assert User.objects.filter(pk=away.pk).exists()


@pytest.mark.parametrize("ids", [None, "1", [0], ["x"], [2**63], {}])
def test_malformed_bodies_are_refused(api, ids):
    assert api["admin"].post(f"{URL}/delete", {"ids": ids}).status_code == 400

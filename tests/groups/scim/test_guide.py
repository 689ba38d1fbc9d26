"""The requests of docs/scim.md work, one after the other."""

import json
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Group, User
from tests.documentation.blocks import blocks
from tests.support.cast import client


@pytest.mark.django_db
def test_its_requests_set_up_provision_and_deactivate(api: Any) -> None:
    sender = api["admin"]
    for block in blocks("docs/scim.md"):
        head, _, body = block.text.partition("\n\n")
        method, path, *_ = head.split()
        user, group = User.objects.filter(username__contains="@").first(), Group.objects.first()
        for number, row in (("2", user), ("1", group)):
            if row is not None:
                path = path.replace(f"s/{number}", f"s/{row.pk}")
                body = body.replace(f'"{number}"', f'"{row.pk}"').replace(
                    f'\\"{number}\\"', f'\\"{row.pk}\\"'
                )
        answer = getattr(sender, method.lower())(path, json.loads(body) if body else None)
        assert answer.status_code in (200, 201, 204), answer.content
        if "token" in path:
            sender = client(f"Bearer {answer.json()['token']}")
    assert answer.json()["totalResults"] == 1
    aisha = User.objects.get(username="aisha@example.org")
    assert (aisha.name, aisha.is_active, list(aisha.groups.all())) == ("Aisha Khan", False, [])
    assert AuditEvent.objects.filter(actor_name="SCIM").count() == 5

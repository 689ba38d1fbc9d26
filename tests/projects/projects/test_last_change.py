"""The last change of a project in the list is the latest by time."""

from datetime import timedelta

from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from projects.projects.pages import read_project_states


def test_an_older_event_that_was_stored_later_is_not_the_last_change(shop):
    now = timezone.now()
    for at in (now, now - timedelta(days=30)):  # as a move stores the history of another server
        AuditEvent.objects.create(type="feature-updated", project="shop", created_at=at, actor_name="ann")
    assert read_project_states(["shop"])["shop"].changed_at == now

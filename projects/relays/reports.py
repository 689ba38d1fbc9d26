"""Stores what relays say of themselves, and counts them for `/metrics`."""

from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone
from prometheus_client import Gauge

from flagadmin.core.db.transactions import transactional
from flagadmin.core.metrics.processes import process_name
from projects.models import Relay
from projects.relays.states import count_states

MAX_RELAYS = 2_000  # the longest silent ones are forgotten first
KEPT = timedelta(days=30)  # of a silent one
COUNTED = timedelta(days=1)  # of a silent one: later it was taken away

RELAYS = Gauge(
    "flagadmin_relays", "Relays that have said how they are, by their state.", ["state", "process"]
)

_CHANGING = [field.name for field in Relay._meta.concrete_fields if not field.primary_key]


@transactional
def store_relays(relays: Sequence[Relay]) -> None:
    """Replaces what they said before."""
    unique = {relay.identifier: relay for relay in relays}
    in_order = [
        unique[identifier] for identifier in sorted(unique)
    ]  # so that two reports do not wait for each other
    Relay.objects.bulk_create(
        in_order, update_conflicts=True, unique_fields=["identifier"], update_fields=_CHANGING
    )
    if Relay.objects.count() > MAX_RELAYS:
        latest = Relay.objects.order_by("-heard_at")[:MAX_RELAYS].values("identifier")
        Relay.objects.exclude(identifier__in=latest).delete()


def review_relays() -> None:
    """A periodic task: forgets relays that have been silent for long, and counts the others."""
    now = timezone.now()
    Relay.objects.filter(heard_at__lt=now - KEPT).delete()
    for state, number in count_states(Relay.objects.filter(heard_at__gt=now - COUNTED), now).items():
        RELAYS.labels(state, process_name()).set(number)

"""Stores what relays say of themselves, and counts them for `/metrics`."""

from collections.abc import Sequence
from datetime import timedelta
from operator import attrgetter

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
    """Replaces what they said before, but for what was said later: other relays pass reports on."""
    latest = {relay.identifier: relay for relay in sorted(relays, key=attrgetter("heard_at"))}
    # Those of a clock that was ahead are replaced.
    known = Relay.objects.filter(identifier__in=latest, heard_at__lte=timezone.now()).select_for_update()
    heard_at = dict(known.order_by("identifier").values_list("identifier", "heard_at"))
    in_order = [
        relay
        for identifier, relay in sorted(latest.items())  # so that two reports do not wait for each other
        if identifier not in heard_at or relay.heard_at >= heard_at[identifier]
    ]
    Relay.objects.bulk_create(
        in_order, update_conflicts=True, unique_fields=["identifier"], update_fields=_CHANGING
    )
    if Relay.objects.count() > MAX_RELAYS:
        kept = Relay.objects.order_by("-heard_at")[:MAX_RELAYS].values("identifier")
        Relay.objects.exclude(identifier__in=kept).delete()


def review_relays() -> None:
    """A periodic task: forgets relays that have been silent for long, and counts the others."""
    now = timezone.now()
    Relay.objects.filter(heard_at__lt=now - KEPT).delete()
    for state, number in count_states(Relay.objects.filter(heard_at__gt=now - COUNTED), now).items():
        RELAYS.labels(state, process_name()).set(number)

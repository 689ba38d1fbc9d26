"""/relays/: the relays that serve SDKs elsewhere."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from groups.console import Column, Filter, ListPage, Permission
from groups.login.links import make_absolute_url
from projects.models import Relay
from projects.relays.reports import State, describe_state, find_state

PILLS = {
    State.WORKING: ("on", "Works"),
    State.OLD_FLAGS: ("warn", "Old flags"),
    State.FAULTY: ("warn", "Fault"),
    State.SILENT: ("bad", "Silent"),
}


class RelaysPage(ListPage):
    template_name = "relays/relays.html"
    title = "Relays"
    api_call = "GET /api/admin/relays"
    default_sort = "region"
    lead = "Relays serve SDKs close by and keep working when this server is unreachable."
    noun = "relay,relays"
    none_yet = "No relay has reported in the last 30 days. Most installations need none."
    keeps_bar = False
    columns = (
        Column(
            "region",
            "Region",
            by=("region", "identifier"),
            cell='{{ row.region|default:"No region" }} '
            '<span class="muted mono tiny">{{ row.identifier|slice:":8" }}</span>',
        ),
        Column(
            "state",
            "State",
            cell='<div><span class="pill {{ row.pill }}">{{ row.label }}</span>{% if row.state != row.label %} '
            '<span class="tiny muted">{{ row.state }}</span>{% endif %}</div>',
        ),
        Column("version", "Version", by=("version",)),
        Column("tokens", "Tokens", by=("tokens",), numeric=True),
        Column("clients", "Clients", by=("clients",), numeric=True),
        Column("streams", "Streams", by=("streams",), numeric=True),
        Column("flags_read_at", "Flags read", shown="ago"),
        Column("started_at", "Started", by=("started_at",), shown="ago"),
        Column("heard_at", "Last report", by=("heard_at",), shown="ago"),
    )
    filters = (Filter("q", "Region, version or ID"),)

    def find(self) -> None:
        self.caller.check(Permission.ADMIN)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Relay]:
        text = values["q"]
        named = Q(region__icontains=text) | Q(version__icontains=text) | Q(identifier__startswith=text)
        return Relay.objects.filter(named)

    def complete(self, rows: list[Any]) -> list[Any]:
        now = timezone.now()
        for row in rows:
            row.pill, row.label = PILLS[find_state(row, now)]
            row.state = describe_state(row, now)
        return rows

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(server=make_absolute_url(self.request, "/").rstrip("/"), **kwargs)

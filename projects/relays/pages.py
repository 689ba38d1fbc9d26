"""/relays/: the relays that serve SDKs elsewhere."""

from collections.abc import Sequence
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
    csv_name = "relays"
    default_sort = "region"
    columns = (
        Column("region", "Region", by=("region", "identifier")),
        Column("state", "State"),
        Column("version", "Version", by=("version",)),
        Column("tokens", "Tokens", by=("tokens",), numeric=True),
        Column("clients", "Clients", by=("clients",), numeric=True),
        Column("streams", "Streams", by=("streams",), numeric=True),
        Column("flags_read_at", "Flags read"),
        Column("started_at", "Started", by=("started_at",)),
        Column("heard_at", "Last report", by=("heard_at",)),
    )
    filters = (Filter("q", "Region, version or ID"),)

    def find(self) -> None:
        self.caller.check(Permission.ADMIN)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Relay]:
        text = values["q"]
        named = Q(region__icontains=text) | Q(version__icontains=text) | Q(identifier__startswith=text)
        return Relay.objects.filter(named)

    def get_csv_cells(self, row: Any) -> Sequence[Any]:
        state = describe_state(row, timezone.now())
        return [state if column.key == "state" else getattr(row, column.key) for column in self.columns]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(server=make_absolute_url(self.request, "/").rstrip("/"), **kwargs)
        if listing := context.get("listing"):
            now = timezone.now()
            context["rows"] = [
                (row, *PILLS[find_state(row, now)], describe_state(row, now)) for row in listing.rows
            ]
        return context

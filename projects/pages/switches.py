"""Flags with their switches: what a list and a flag's own page show of each environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import path

from groups.access import Caller
from groups.permissions import Permission
from projects.actions.flag_environments import disable_flag, enable_flag
from projects.documents.flags import flag_summaries
from projects.models import Flag
from projects.pages.base import ActionPage, flag_url


@dataclass(frozen=True, slots=True)
class Switch:
    """A flag in an environment. ``locked``: this caller may not switch it."""

    environment: str
    enabled: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A line of the list."""

    flag: Flag
    url: str
    favourite: bool
    tags: Sequence[str]
    switches: Sequence[Switch]


def flag_rows(flags: Sequence[Flag], *, caller: Caller) -> list[FlagRow]:
    """Six queries for any number of flags."""
    return [
        FlagRow(
            flag=flag,
            url=flag_url(flag.project_id, flag.name),
            favourite=summary["favorite"],
            tags=[f"{tag['type']}:{tag['value']}" for tag in summary.get("tags", [])],
            switches=[switch_of(flag, place, caller=caller) for place in summary["environments"]],
        )
        for flag, summary in zip(flags, flag_summaries(flags, caller=caller), strict=True)
    ]


def switch_of(flag: Flag, place: dict[str, Any], *, caller: Caller) -> Switch:
    permission = Permission.UPDATE_FEATURE_ENVIRONMENT
    may = caller.can(permission, project=flag.project_id, environment=place["name"])
    return Switch(place["name"], place["enabled"], flag.is_archived or not may)


class SwitchFlag(ActionPage):
    """Switches a flag on or off in one environment."""

    def act(self) -> str:
        project_id, name = self.kwargs["project_id"], self.kwargs["name"]
        environment, wanted = self.request.POST.get("environment", ""), self.request.POST.get("enabled")
        switch = enable_flag if wanted == "on" else disable_flag
        switch(project_id, name, environment, caller=self.caller)
        return f"Switched {name} {'on' if wanted == 'on' else 'off'} in {environment}."

    def back(self) -> str:
        return flag_url(self.kwargs["project_id"], self.kwargs["name"])


urlpatterns = [path("projects/<str:project_id>/features/<str:name>/switch", SwitchFlag.as_view())]

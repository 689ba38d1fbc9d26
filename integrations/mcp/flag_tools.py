"""Tools for flags: find, describe, create and turn off."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from django.http import QueryDict
from pydantic import Field

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.errors import ValidationError, choices
from flagadmin.core.http.responses import iso
from groups.access import Caller
from integrations.mcp.comparison_tools import count_who_changes
from integrations.mcp.plan_tool import list_unfinished_plans
from integrations.mcp.tool import (
    FEW,
    Answer,
    Call,
    Exact,
    ListArguments,
    Tool,
    WriteArguments,
    done,
    find_flag,
    perform,
)
from projects.access import check_project, find_project_environment
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments.actions import disable_flag
from projects.flags.flag_document import read_flag_document
from projects.flags.insights.queries import list_using_applications
from projects.flags.lists.search import FlagFilter
from projects.flags.queries import list_flag_summaries, make_metadata_answer
from projects.history.queries import EventFilter, narrow_events, readable_events
from projects.models import Flag, Segment
from projects.strategies.sentences import format_percent, summarize_strategy

Document = Mapping[str, Any]
ONLY = {
    "stale": {"state": "IS:stale"},
    "overdue": {"state": "IS:overdue"},
    "off": {"rollout": "IS:off"},
    "full": {"rollout": "IS:full"},
    "differs": {"rollout": "IS:differs"},
    "never evaluated": {"evaluated": "IS:never"},
    "archived": {"archived": "IS:true"},
}


class FindFlags(ListArguments):
    query: str = Field("", max_length=1_000, description="Part of a name, a description, a tag or an owner.")
    project: str | None = Field(None, description="Id of a project; without it, all that you may read.")
    only: Literal["stale", "overdue", "off", "full", "differs", "never evaluated", "archived"] | None = Field(
        None,
        description="overdue: past its expected lifetime. off: off everywhere. full: on for everyone in production "
        "for 30 days. differs: not the same in all environments.",
    )


def find_flags(call: Call, arguments: FindFlags) -> Answer:
    parameters = {
        "query": arguments.query,
        "limit": str(arguments.most),
        "sortBy": "name",
        "sortOrder": "asc",
        **ONLY.get(arguments.only or "", {}),
    }
    if arguments.project is not None:
        check_project(call.caller, arguments.project)
        parameters["project"] = f"IS:{arguments.project}"
    search = FlagFilter(QueryDict(urlencode(parameters)), Flag.objects.readable_by(call.caller))
    flags, total = search.page(call.caller.id)
    summaries = list_flag_summaries(flags, caller=call.caller)
    lines = [_summarize(flag, summary) for flag, summary in zip(flags, summaries, strict=True)]
    return {"total": total, "flags": lines}


def _summarize(flag: Flag, summary: Document) -> Answer:
    places = summary["environments"]
    return {
        "name": flag.name,
        "project": flag.project_id,
        "type": flag.type,
        **({"description": flag.description} if flag.description else {}),
        "onIn": [place["name"] for place in places if place["enabled"]],
        "lastSeen": max((place["lastSeenAt"] for place in places if place["lastSeenAt"]), default=None),
        **({"stale": True} if flag.stale else {}),
        **({"archived": True} if flag.is_archived else {}),
    }


class GetFlag(ListArguments):
    flag: str = Field(description="Its name.")
    environment: str | None = Field(
        None,
        description="Its rules there are answered exactly as well, with parameters, constraints, segments and "
        "payloads: what propose_change and who_changes take.",
    )

    @property
    def wants_more(self) -> bool:
        return super().wants_more or self.environment is not None


def get_flag(call: Call, arguments: GetFlag) -> Answer:
    flag = find_flag(call.caller, arguments.flag)
    document = read_flag_document(flag, caller=call.caller)
    plans = list_unfinished_plans(flag, [place["name"] for place in document["environments"]])
    events = narrow_events(readable_events(call.caller), EventFilter(features=[flag.name])).newest_first()
    return {
        "name": flag.name,
        "project": flag.project_id,
        "type": flag.type,
        "description": flag.description,
        "createdAt": document["createdAt"],
        "createdBy": document["createdBy"]["name"],
        "owner": flag.make_owner_document(),
        "stale": flag.stale,
        "archived": flag.is_archived,
        "environments": list(_describe_environments(document["environments"])),
        **({} if arguments.environment is None else _take_rules(document, arguments.environment)),
        **({"releasePlans": plans} if plans else {}),
        "dependsOn": document["dependencies"],
        "dependents": document["children"],
        "usedBy": [
            {
                "application": user.name,
                "environments": user.environments,
                "lastUsedAt": iso(user.last_used_at),
                "sdks": user.sdks,
            }
            for user in list_using_applications(flag)[: arguments.most]
        ],
        "changes": [change_document(event) for event in events[: arguments.limit or FEW // 2]],
    }


def _take_rules(document: Document, environment: str) -> Answer:
    """The flag in the environment, in the API's form. Raises ValidationError."""
    places = {place["name"]: place for place in document["environments"]}
    if environment not in places:
        raise ValidationError.at("environment", f"must be one of {choices(places)}, not {environment[:100]}")
    members = ("enabled", "strategies", "variants")
    return {"rules": Exact({name: places[environment][name] for name in members})}


def _describe_environments(places: list[Document]) -> Iterator[Answer]:
    ids = {number for place in places for strategy in place["strategies"] for number in strategy["segments"]}
    segments = Segment.objects.names(ids)
    for place in places:
        yield {
            "name": place["name"],
            "enabled": place["enabled"],
            "lastSeen": place["lastSeenAt"],
            "strategies": [
                {
                    "id": strategy["id"],
                    "sentence": str(summarize_strategy(strategy, segments=segments)),
                    **({"disabled": True} if strategy["disabled"] else {}),
                }
                for strategy in place["strategies"]
            ],
            **({"variants": _describe_variants(place["variants"])} if place["variants"] else {}),
        }


def _describe_variants(variants: list[Document]) -> list[str]:
    return [f"{variant['name']}: {format_percent(variant.get('weight'))} %" for variant in variants]


def change_document(event: AuditEvent) -> Answer:
    return {
        "id": event.pk,
        "at": iso(event.created_at),
        "by": event.actor_name,
        "what": make_sentence(event),
        **({"comment": event.comment} if event.comment else {}),
    }


class CreateFlag(WriteArguments):
    project: str = Field(description="Id of the project.")
    name: str = Field(description="1 to 100 letters, digits, '-', '_', '.' or '~'.")
    type: str = Field("release", description="release, experiment, operational, kill-switch or permission.")
    description: str = Field("", max_length=10_000)


def create(call: Call, arguments: CreateFlag) -> Answer:
    new = NewFlag(name=arguments.name, type=arguments.type, description=arguments.description)
    flag = perform(call, arguments, lambda: create_flag(arguments.project, new, caller=call.caller))
    return done(arguments, flag=make_metadata_answer(flag), state="off in every environment")


class TurnOff(WriteArguments):
    flag: str = Field(description="Its name.")
    environment: str


def turn_off(call: Call, arguments: TurnOff) -> Answer:
    flag = find_flag(call.caller, arguments.flag, archived=False)
    find_project_environment(flag.project_id, arguments.environment)
    effect = _measure(call.caller, flag, arguments.environment) if arguments.dry_run else {}
    was_on = perform(
        call,
        arguments,
        lambda: disable_flag(flag.project_id, flag.name, arguments.environment, caller=call.caller),
    )
    return done(arguments, flag=flag.name, environment=arguments.environment, wasOn=was_on, **effect)


def _measure(caller: Caller, flag: Flag, environment: str) -> Answer:
    return {"whoChanges": count_who_changes(caller, flag, environment, {"enabled": False}, examples=0)}


TOOLS = [
    Tool(
        "find_flags",
        "Find flags",
        "Searches the flags that you may read, by text, project and state.",
        FindFlags,
        find_flags,
    ),
    Tool(
        "get_flag",
        "Describe a flag",
        "A flag: its rules in words for each environment, what depends on it, which applications use it, and its last "
        "changes.",
        GetFlag,
        get_flag,
    ),
    Tool(
        "create_flag",
        "Create a flag",
        "Creates a flag, which is off everywhere. A dry run by default.",
        CreateFlag,
        create,
    ),
    Tool(
        "turn_off_flag",
        "Turn off a flag",
        "The kill switch: turns a flag off for everybody in one environment. A dry run by default, which says how many "
        "users lose it. Turning on is not possible here: propose_change.",
        TurnOff,
        turn_off,
        is_destructive=True,
    ),
]

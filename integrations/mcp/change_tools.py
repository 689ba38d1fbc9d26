"""Tools for changes: recent changes, differences between environments, and proposals."""

from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, ValidationError, pluralize
from groups.permissions import Permission
from integrations.mcp.flag_tools import change_document
from integrations.mcp.tool import (
    Answer,
    Arguments,
    Call,
    ListArguments,
    Tool,
    WriteArguments,
    done,
    perform,
)
from projects.access import access_project, check_environment, check_project, find_project_environment
from projects.environments.comparison_queries import DIFFERS, ComparedFlag, compare_flags, select_flags
from projects.history.queries import EventFilter, narrow_events, readable_events
from projects.models import Segment
from projects.strategies.sentences import summarize_strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests.details import set_title
from releases.requests.propose import add_changes
from releases.requests.queries import by
from releases.requests.states import set_state

WHEN = "A day or a time, such as 2026-11-20 or 2026-11-20T12:00:00Z."


class ListChanges(ListArguments):
    project: str | None = Field(None, description="Id of a project; without it, all that you may read.")
    flag: str | None = None
    environment: str | None = None
    person: str = Field("", max_length=200, description="Part of a name.")
    since: datetime | None = Field(None, description=WHEN)
    until: datetime | None = Field(None, description=WHEN)


def list_changes(call: Call, arguments: ListChanges) -> Answer:
    criteria = EventFilter(
        projects=[check_project(call.caller, arguments.project).pk] if arguments.project is not None else (),
        environments=[check_environment(arguments.environment).name]
        if arguments.environment is not None
        else (),
        features=[arguments.flag] if arguments.flag is not None else (),
        person=arguments.person.strip(),
        since=_in_utc(arguments.since),
        until=_in_utc(arguments.until),
    )
    events = narrow_events(readable_events(call.caller), criteria).newest_first()[: arguments.most + 1]
    listed = [change_document(event) for event in events]
    return {"changes": listed[: arguments.most], "more": len(listed) > arguments.most}


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


class CompareEnvironments(ListArguments):
    project: str = Field(description="Id of the project.")
    first: str = Field(description="An environment.")
    second: str = Field(description="Another one.")
    query: str = Field("", max_length=1_000, description="Only flags with this in name, description or tag.")


def compare_environments(call: Call, arguments: CompareEnvironments) -> Answer:
    project = check_project(call.caller, arguments.project)
    environments = arguments.first, arguments.second
    for name in environments:
        find_project_environment(project.pk, name)
    flags = compare_flags(project, environments, text=arguments.query.strip())
    differing = select_flags(flags, show=DIFFERS, kind="")
    listed = differing[: arguments.most]
    segments = dict(Segment.objects.usable_in(project.pk).values_list("pk", "name"))
    return {
        "flags": len(flags),
        "differing": len(differing),
        "differences": [_difference(flag, environments, segments) for flag in listed],
    }


def _difference(flag: ComparedFlag, environments: tuple[str, str], segments: dict[int, str]) -> Answer:
    sides = {
        name: {
            "enabled": side.enabled,
            "strategies": [str(summarize_strategy(each, segments=segments)) for each in side.strategies[:3]],
        }
        for name, side in zip(environments, flag.pair, strict=True)
    }
    return {"flag": flag.name, "differsIn": flag.differences, **sides}


class ProposedAction(Arguments):
    feature: str = Field("", description="The flag; not for segments.")
    action: str = Field(
        description="updateEnabled {enabled}, addStrategy {name, parameters, constraints, segments}, updateStrategy "
        "{id, …}, deleteStrategy {id}, reorderStrategy [{id, sortOrder}], patchVariant {variants}, "
        "updateImpressionData {impressionData}, archiveFeature, addDependency {feature}, deleteDependency {feature}, "
        "updateSegment {id, …}, deleteSegment {id}."
    )
    payload: Any = Field(None, description="What the action takes, as the API takes it.")


class ProposeChange(WriteArguments):
    project: str = Field(description="Id of the project.")
    environment: str
    title: str = Field(min_length=1, max_length=255, description="What it is for.")
    changes: list[ProposedAction] = Field(min_length=1, max_length=50)


def propose_change(call: Call, arguments: ProposeChange) -> Answer:
    access_project(call.caller, arguments.project, Permission.UPDATE_FEATURE)
    _check_no_draft(call, arguments)
    request = perform(call, arguments, lambda: _propose(call, arguments))
    address = f"{call.server}/projects/{arguments.project}/change-requests/{request.pk}/"
    return done(
        arguments,
        state=request.state,
        neededApprovals=request.required_approvals,
        impact=request.impact,
        **({} if arguments.dry_run else {"id": request.pk, "reviewAt": address}),
    )


@transactional
def _propose(call: Call, arguments: ProposeChange) -> ChangeRequest:
    changes = [
        ProposedChange(change.feature, change.action, change.payload, path=f"changes[{index}]")
        for index, change in enumerate(arguments.changes)
    ]
    request = add_changes(
        arguments.project, arguments.environment, changes, may_discard=True, caller=call.caller
    )
    if not request.changes.exists():
        raise ValidationError.at("changes", "leave everything as it is")
    set_title(arguments.project, request.pk, arguments.title, caller=call.caller)
    state = ChangeRequest.State.IN_REVIEW
    return set_state(arguments.project, request.pk, state, text=arguments.comment, caller=call.caller)


def _check_no_draft(call: Call, arguments: ProposeChange) -> None:
    """Raises InvalidOperation if the user has an open draft, so that it is not submitted along with the proposal."""
    drafts = ChangeRequest.objects.filter(
        by(call.caller),
        project=arguments.project,
        environment=arguments.environment,
        state=ChangeRequest.State.DRAFT,
    )
    if draft := drafts.first():
        number = pluralize(draft.changes.count(), "change")
        raise InvalidOperation(
            f"Change request {draft.pk} is your draft for {arguments.environment}, with {number}. Send or discard it "
            "first."
        )


TOOLS = [
    Tool(
        "list_changes",
        "What has changed?",
        "Changes, newest first, by time, person, project, flag or environment.",
        ListChanges,
        list_changes,
    ),
    Tool(
        "compare_environments",
        "Compare environments",
        "The flags of a project that are not the same in two environments, and in what.",
        CompareEnvironments,
        compare_environments,
    ),
    Tool(
        "propose_change",
        "Propose a change",
        "Makes a change request, which people review and apply: this never changes what users get. A dry run by "
        "default, which says who would change.",
        ProposeChange,
        propose_change,
    ),
]

"""The tool that lists change requests and their state."""

from typing import Any, Literal

from pydantic import Field

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.responses import iso
from integrations.mcp.tool import Answer, Call, ListArguments, Tool
from projects.access import check_environment, check_project
from releases.changes import KINDS
from releases.models import ChangeRequest
from releases.requests.conflicts import make_target, name_request, read_stored
from releases.requests.queries import CLOSED, UNDECIDED, make_request_documents, visible_requests

STATES = {"open": (ChangeRequest.State.DRAFT, *UNDECIDED), "closed": CLOSED}
MAX_SENTENCES = 5
"""The number of changes described in words when several requests are listed."""


class ListChangeRequests(ListArguments):
    request: int | None = Field(
        None, ge=1, le=2**31 - 1, description="Its number: only this one, with the payload of each change."
    )
    project: str | None = Field(None, description="Id of a project; without it, all that you may read.")
    environment: str | None = None
    flag: str | None = Field(None, description="Only requests that change it.")
    state: Literal["open", "closed"] = Field(
        "open", description="open: drafts of yours, in review, approved, scheduled. closed: all others."
    )

    @property
    def wants_more(self) -> bool:
        return super().wants_more or self.request is not None


def list_change_requests(call: Call, arguments: ListChangeRequests) -> Answer:
    requests = visible_requests(call.caller)
    if arguments.project is not None:
        requests = requests.filter(project=check_project(call.caller, arguments.project).pk)
    if arguments.environment is not None:
        requests = requests.filter(environment=check_environment(arguments.environment).name)
    if arguments.flag is not None:
        requests = requests.filter(changes__feature=arguments.flag).distinct()
    if arguments.request is not None:
        requests = requests.filter(pk=arguments.request)
        if not requests:
            raise ValidationError.at("request", f"change request {arguments.request} not found")
    else:
        requests = requests.filter(state__in=STATES[arguments.state])
    page = list(requests[: arguments.most + 1])
    listed = page[: arguments.most]
    documents = make_request_documents(listed)
    return {
        "changeRequests": [
            _describe(call, request, document, is_whole=arguments.request is not None)
            for request, document in zip(listed, documents, strict=True)
        ],
        "more": len(page) > len(listed),
    }


def _describe(call: Call, request: ChangeRequest, document: Answer, *, is_whole: bool) -> Answer:
    given = [review for review in document["approvals"] if "lapsed" not in review]
    conflicts = [change["conflict"] for change in _list_changes(document) if change.get("conflict")]
    return {
        "id": request.pk,
        "title": name_request(request),
        "project": request.project_id,
        "environment": request.environment_id,
        "state": request.state,
        "by": request.author_name,
        "createdAt": iso(request.created_at),
        "changes": _describe_changes(request, is_whole=is_whole),
        "approvals": {"given": [review["createdBy"]["username"] for review in given]}
        | {"needed": request.required_approvals},
        **({"conflicts": conflicts} if conflicts else {}),
        **({"schedule": document["schedule"]} if "schedule" in document else {}),
        **({"impact": document["impact"]} if is_whole and "impact" in document else {}),
        "reviewAt": f"{call.server}/projects/{request.project_id}/change-requests/{request.pk}/",
    }


def _list_changes(document: Answer) -> list[Answer]:
    return [*(each for flag in document["features"] for each in flag["changes"]), *document["segments"]]


def _describe_changes(request: ChangeRequest, *, is_whole: bool) -> list[Any]:
    """Describes each change in a sentence; with ``is_whole``, also in the form that `propose_change` accepts."""
    changes = list(request.changes.all())[: None if is_whole else MAX_SENTENCES]
    stored = read_stored(request, changes)
    sentences = [
        KINDS[change.action].say(make_target(request, change, stored), change.payload, change.made_from)
        for change in changes
    ]
    if not is_whole:
        return sentences
    return [
        {"sentence": sentence, "feature": change.feature, "action": change.action, "payload": change.payload}
        for sentence, change in zip(sentences, changes, strict=True)
    ]


TOOLS = [
    Tool(
        "list_change_requests",
        "List change requests",
        "Change requests, newest first: what each changes, its state, its approvals, and what is in conflict.",
        ListChangeRequests,
        list_change_requests,
    ),
]

"""/projects/ID/change-requests/: lists and shows change requests, and moves them through their states."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse, reverse_lazy

from flagadmin.core.edit_conflicts import Expected, hash_document
from flagadmin.core.errors import ValidationError, clip, pluralize
from flagadmin.core.http.fields import path_id
from flagadmin.core.lists.pages import Column, Filter, curl_for
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, ListPage
from groups.models import User
from projects.access import access_project
from projects.console import api_path, project_url
from projects.models import Project
from projects.projects.head import make_project_head
from releases.models import Change, ChangeRequest
from releases.requests import details, propose
from releases.requests.approvals import access_request, check_author, list_proposal
from releases.requests.approvers import check_may_approve, list_approvers
from releases.requests.conflicts import name_request
from releases.requests.lines import Line, list_lines
from releases.requests.queries import read_requests, visible_requests, waiting_for
from releases.requests.revert import revert_request
from releases.requests.states import list_possible_states
from releases.schedules.actions import set_any_state
from releases.schedules.later import parse_utc

State = ChangeRequest.State


def request_url(request: ChangeRequest) -> str:
    return reverse("change-request", args=[request.project_id, request.pk])


REQUESTS = ("Requests", reverse_lazy("all-change-requests"))
WAITING = "waiting"


class RequestList(ListPage):
    """A list of change requests, newest first, with their conflicts."""

    template_name = "releases/requests.html"
    title = "Change requests"
    default_sort = "-number"
    lead = "Changes that need approval."
    noun = "change request,change requests"
    none_yet = "No change requests yet. Saving a change that needs approval starts one."
    columns: Sequence[Column] = (
        Column(
            "number",
            "Request",
            by=("id",),
            csv="request.pk",
            cell='<a href="{% url "change-request" row.request.project_id row.request.pk %}">{{ row.name }}</a>'
            '<small class="below">{{ row.request.pk }} · {{ row.request.change_count|grouped }} '
            "change{{ row.request.change_count|pluralize }}</small>",
        ),
        Column(
            "environment",
            "Environment",
            by=("environment", "id"),
            value="request.environment_id",
            css="word",
        ),
        Column(
            "users",
            "Users",
            numeric=True,
            shown='default:"–"',
            css="short",
            attributes='{% if row.users %} title="Measured {% if row.conflicts %}now{% else %}when it was '
            'last sent or reviewed{% endif %}"{% endif %}',
        ),
        Column(
            "state",
            "State",
            by=("state", "id"),
            value="request.state",
            cell='{% include "releases/state_in_list.html" %}',
        ),
        Column(
            "waits",
            "Waits for",
            csv=lambda row: row.waits or row.at or "",
            cell='{% if row.at %}{{ row.at|moment }}{% else %}{{ row.waits|default:"–" }}{% endif %}',
        ),
        Column(
            "author",
            "By",
            by=("author_name", "id"),
            csv="request.author_name",
            cell="{{ row.request.author_full_name }}",
            css="word",
        ),
        Column("created", "Begun", by=("created_at",), value="request.created_at", shown="day"),
    )
    state_filter = Filter("state", "State", options=[(state.value, state.value) for state in State])

    def narrow(self, requests: QuerySet[ChangeRequest], state: str) -> QuerySet[Any]:
        """The requests in this state, "" for all, without what the list does not show."""
        requests = requests.prefetch_related(None)
        if state:
            requests = requests.filter(state=state)
        # The page needs little of each request's data. With a join, the changes of all requests would be counted
        # for each page, grouped by all columns.
        counts = Change.objects.order_by().filter(request=OuterRef("pk")).values("request")
        number = Subquery(counts.annotate(number=Count("pk")).values("number"))
        listed = (
            requests.select_related(None)
            .select_related("author", "project", "schedule")
            .defer("impact", "moved", "summary")
        )
        # The whole effect may be large, too.
        effect = {"changed": F("impact__changed"), "users": F("impact__users")}
        return listed.annotate(change_count=Coalesce(number, 0), **effect).order_by()

    def complete(self, rows: list[Any]) -> Iterator[Line]:
        return list_lines(rows)


class RequestsPage(RequestList):
    def get_filters(self) -> Sequence[Filter]:
        return (self.state_filter,)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.csv_name = f"{self.project.pk}-change-requests"
        return self.narrow(read_requests(self.project.pk, self.caller), values["state"])

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (REQUESTS, (self.project.name, project_url(self.project.pk)))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        head = make_project_head(self.project, "change-requests", caller=self.caller)
        return super().get_context_data(**kwargs) | {"parent": "projects/base.html"} | head

    def get_curl(self) -> str:
        return curl_for(self.request, "GET", f"{api_path(self.project.pk)}/change-requests")


class AllRequestsPage(RequestList):
    """The requests of all projects; ``show=waiting`` narrows them to those that wait for the visitor."""

    title = "Requests"
    csv_name = "change-requests"
    columns = (
        RequestList.columns[0],
        Column(
            "project",
            "Project",
            by=("project", "id"),
            csv="request.project_id",
            cell="{{ row.request.project.name }}",
            css="word",
        ),
        *RequestList.columns[1:],
    )
    api_call = "GET /api/admin/search/change-requests"

    def get_filters(self) -> Sequence[Filter]:
        projects = Project.objects.active().readable_by(self.caller).order_by("name")
        return (
            Filter("show", "Show", options=[(WAITING, "Waiting for you")]),
            Filter("project", "Project", options=list(projects.values_list("pk", "name"))),
            self.state_filter,
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        requests = visible_requests(self.caller)
        if values["show"]:
            requests = requests.filter(pk__in=waiting_for(self.caller, requests).order_by().values("pk"))
        if values["project"]:
            requests = requests.filter(project=values["project"])
        return self.narrow(requests, values["state"])


ENDS = {"Cancel": State.CANCELLED, "Reject": State.REJECTED}
LOSSES = {
    "Cancel": "Nothing changes in the environment. A cancelled request cannot be opened again.",
    "Reject": "Nothing changes in the environment. A rejected request cannot be opened again.",
    "Discard": "The draft and its changes are deleted. Nothing changes in the environment.",
}


def read_target(kwargs: Mapping[str, Any]) -> tuple[str, int]:
    return kwargs["project_id"], path_id(kwargs["request_id"], "Change request")


class RequestAction(ActionPage):
    @property
    def target(self) -> tuple[str, int]:
        return read_target(self.kwargs)

    def get_success_url(self) -> str:
        project_id, number = self.target
        if not ChangeRequest.objects.filter(pk=number).exists():
            return project_url(project_id, "change-requests")
        return reverse("change-request", args=[project_id, number])


DONE = {
    State.IN_REVIEW: "Sent change request {} for review.",
    State.APPROVED: "Approved change request {}.",
    State.REJECTED: "Rejected change request {}.",
    State.APPLIED: "Applied change request {}.",
    State.CANCELLED: "Cancelled change request {}.",
    State.SCHEDULED: "Scheduled change request {}.",
}


def expect_shown(post: Mapping[str, str]) -> Expected:
    """The proposal shown by the page of a form, and its effect if that can be approved."""
    shown = frozenset(filter(None, (post.get("proposal"), post.get("effect"))))
    return shown or None


class SetState(RequestAction):
    def act(self) -> str:
        project_id, number = self.target
        post = self.request.POST
        text = post.get("comment", "").strip()
        at = parse_utc(post["at"]) if post.get("at") else None
        request = set_any_state(
            project_id,
            number,
            post.get("state", ""),
            text=text,
            at=at,
            cancels_schedule=post.get("was") == State.SCHEDULED,
            expected=expect_shown(post),
            caller=self.caller,
        )
        return DONE[State(self.request.POST["state"])].format(request.pk)


class AddComment(RequestAction):
    def act(self) -> str:
        if not (text := self.request.POST.get("comment", "").strip()):
            raise ValidationError.at("comment", "Write something first.")
        details.comment(*self.target, text, caller=self.caller)
        return "Commented."


class SetTitle(RequestAction):
    def act(self) -> str:
        title = self.request.POST.get("title", "").strip()
        details.set_title(*self.target, title, caller=self.caller)
        return "Changed the title."


class SetReviewers(RequestAction):
    """Asks one more person for a review, by user name, or withdraws that."""

    def act(self) -> str:
        project_id, number = self.target
        if removed := self.request.POST.get("remove"):
            details.remove_reviewer(project_id, number, path_id(removed, "User"), caller=self.caller)
            return "They are no longer asked for a review."
        user = self.find_reviewer(access_request(project_id, number, self.caller))
        details.ask_reviewer(project_id, number, user.pk, caller=self.caller)
        return f"Asked {user.display_name} for a review."

    def find_reviewer(self, request: ChangeRequest) -> User:
        """Raises ValidationError."""
        name = self.request.POST.get("reviewer", "").strip()
        for user in list_approvers(request.project_id, request.environment_id):
            if user.username == name:
                return user
        where = f"changes of {request.environment_id} in project {request.project_id}"
        raise ValidationError.at(
            "reviewer", f"{clip(name, 100) or 'No name'} is nobody who may approve {where}."
        )


class RemoveChange(RequestAction):
    def act(self) -> str:
        change = path_id(self.request.POST.get("change", ""), "Change")
        propose.remove_change(*self.target, change, caller=self.caller)
        return "Removed the change."


class KeepChange(RequestAction):
    def act(self) -> str:
        change = path_id(self.request.POST.get("change", ""), "Change")
        propose.keep_change(*self.target, change, caller=self.caller)
        return "Kept the change on top of what is there now."


class Revert(RequestAction):
    def act(self) -> str:
        self.made = revert_request(*self.target, caller=self.caller)
        return f"Made change request {self.made.pk}, which takes change request {self.target[1]} back."

    def get_redirect_url(self) -> str:
        return request_url(self.made) if hasattr(self, "made") else self.get_success_url()


class EndRequest(ConfirmPage):
    """Confirms the final end of a request: "Cancel", "Reject", or "Discard" for a draft."""

    verb = "Cancel"

    def plan(self) -> dict[str, Any]:
        project_id, number = read_target(self.kwargs)
        self.request_row = row = access_request(project_id, number, self.caller)
        self.check_permission(row)
        name = "draft" if self.verb == "Discard" else f"change request {number}"
        return {
            "title": f"{self.verb} {name}",
            "lead": f"{name_request(row)}: {pluralize(row.changes.count(), 'change')} to {row.environment_id}.",
            "consequences": [LOSSES[self.verb]],
            "blocked": self.find_obstacle(row),
            "hidden": [("proposal", self.read_proposal() or hash_document(list_proposal(row)))],
            "keep": f"Keep {name}",
            "asks_why": self.verb != "Discard",  # the events of a draft go to everyone
        }

    def read_proposal(self) -> str:
        """The fingerprint of the proposal shown on the previous page; "" without one."""
        return self.request.POST.get("proposal") or self.request.GET.get("proposal", "")

    def check_permission(self, row: ChangeRequest) -> None:
        """Raises NoAccess for callers who could not do it in any state."""
        if self.verb == "Reject":
            check_may_approve(row.project_id, row.environment_id, self.caller)
        elif not self.caller.is_admin:
            check_author(row, self.caller)

    def find_obstacle(self, row: ChangeRequest) -> str:
        if self.verb == "Discard":
            is_possible = row.state == State.DRAFT
        else:
            is_possible = ENDS[self.verb] in list_possible_states(row, self.caller)
        return "" if is_possible else f"It is in state {row.state}: you cannot {self.verb.lower()} it."

    def get_breadcrumbs(self) -> Breadcrumbs:
        row = self.request_row
        requests = (row.project.name, project_url(row.project_id, "change-requests"))
        return (REQUESTS, requests, (name_request(row), request_url(row)))

    def act(self) -> tuple[str, str]:
        project_id, number = read_target(self.kwargs)
        if self.verb == "Discard":
            propose.delete_request(project_id, number, caller=self.caller)
            return "Discarded the draft.", project_url(project_id, "change-requests")
        text = self.request.POST.get("comment", "").strip()
        row = set_any_state(
            project_id,
            number,
            ENDS[self.verb],
            text=text,
            expected=expect_shown(self.request.POST),
            caller=self.caller,
        )
        return DONE[State(row.state)].format(row.pk), request_url(row)

"""/api/admin/projects/:projectId/change-requests: propose, review and apply changes."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import path_id
from groups.authentication import ApiRequest
from groups.models import User
from projects.access import find_project_environment
from projects.models import ProjectEnvironment
from projects.project_scope import InProjectViewSet
from projects.projects.environments import POLICY_PERMISSIONS, set_policy
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests import details, propose
from releases.requests.approvals import access_request, list_proposal
from releases.requests.approvers import list_approvers
from releases.requests.propose import add_changes
from releases.requests.queries import (
    MAX_LISTED,
    UNDECIDED,
    count_states,
    make_request_documents,
    read_requests,
    request_document,
    waiting_for,
)
from releases.requests.revert import revert_request
from releases.requests.review import hash_effect
from releases.requests.serializers import (
    ChangeBody,
    ChangeRequestRecord,
    CommentBody,
    CountRecord,
    NewStateBody,
    PolicyBody,
    PolicyRecord,
    ReviewersBody,
    ReviewersRecord,
    ScheduledRecord,
    TitleBody,
    TotalRecord,
)
from releases.schedules.actions import set_any_state

TAGS = ("Change requests",)
State = ChangeRequest.State


class ChangeRequestViewSet(ETagMixin, InProjectViewSet):
    tags = TAGS
    conditional = frozenset({"set_state"})
    lookup_url_kwarg = "request_id"
    permissions = {
        "destroy": None,
        "set_state": None,  # the action checks the permission for the state
        "set_title": None,
        "set_approvers": None,
        "comment": None,
        "revert": None,
    }

    def find_request(self, project_id: str, request_id: str) -> ChangeRequest:
        return access_request(project_id, path_id(request_id, "Change request"), self.caller)

    def get_current_document(self) -> list[dict[str, Any]]:
        return list_proposal(self.find_request(self.kwargs["project_id"], self.kwargs["request_id"]))

    def make_version(self) -> str:
        found = self.find_request(self.kwargs["project_id"], self.kwargs["request_id"])
        return ".".join(filter(None, (hash_document(list_proposal(found)), hash_effect(found))))

    def documents(self, requests: Any) -> list[dict[str, Any]]:
        return make_request_documents(requests[:MAX_LISTED])

    @extend_schema(operation_id="getProjectChangeRequests", responses={200: ChangeRequestRecord(many=True)})
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the project's change requests, newest first: the last 300 that were sent, and your drafts."""
        return Response(self.documents(read_requests(project_id, self.caller)))

    @extend_schema(operation_id="getOpenChangeRequests", responses={200: ChangeRequestRecord(many=True)})
    @action(detail=False)
    def open(self, request: ApiRequest, project_id: str) -> Response:
        """List the change requests that are in review, approved or scheduled."""
        return Response(self.documents(read_requests(project_id, self.caller).filter(state__in=UNDECIDED)))

    @extend_schema(operation_id="getPendingChangeRequests", responses={200: ChangeRequestRecord(many=True)})
    @action(detail=False)
    def pending(self, request: ApiRequest, project_id: str) -> Response:
        """List the change requests that are not applied or ended yet, and your drafts."""
        requests = read_requests(project_id, self.caller).filter(state__in=(State.DRAFT, *UNDECIDED))
        return Response(self.documents(requests))

    @extend_schema(
        operation_id="getPendingChangeRequestsForFeature", responses={200: ChangeRequestRecord(many=True)}
    )
    @action(detail=False, url_path="pending/<str:name>")
    def pending_for_flag(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List the undecided change requests with a change of this flag."""
        requests = read_requests(project_id, self.caller).filter(state__in=(State.DRAFT, *UNDECIDED))
        return Response(self.documents(requests.filter(changes__feature=name).distinct()))

    @extend_schema(
        operation_id="getScheduledChangeRequests",
        parameters=[
            OpenApiParameter("feature", description="Only those with a change of this flag."),
            OpenApiParameter("strategyId", description="Only those with a change of this strategy."),
            OpenApiParameter(
                "variantForFlag", description="Only those that change the variants of this flag."
            ),
        ],
        responses={200: ScheduledRecord(many=True)},
    )
    @action(detail=False)
    def scheduled(self, request: ApiRequest, project_id: str) -> Response:
        """List the scheduled change requests, the next one first."""
        requests = read_requests(project_id, self.caller).prefetch_related(None).filter(state=State.SCHEDULED)
        if feature := request.GET.get("feature"):
            requests = requests.filter(changes__feature=feature)
        if strategy := request.GET.get("strategyId"):
            requests = requests.filter(changes__payload__id=strategy)
        if flag := request.GET.get("variantForFlag"):
            requests = requests.filter(changes__feature=flag, changes__action="patchVariant")
        rows = requests.order_by("schedule__at", "id").distinct()
        return Response(
            [
                {
                    "id": row.pk,
                    "environment": row.environment_id,
                    **({"title": row.title} if row.title else {}),
                }
                for row in rows
            ]
        )

    @extend_schema(operation_id="getActionableChangeRequests", responses={200: TotalRecord})
    @action(detail=False)
    def actionable(self, request: ApiRequest, project_id: str) -> Response:
        """Count the change requests that wait for you: to be approved, or to be applied."""
        requests = read_requests(project_id, self.caller).prefetch_related(None).order_by()
        return Response({"total": waiting_for(self.caller, requests).count()})

    @extend_schema(operation_id="getChangeRequestCount", responses={200: CountRecord})
    @action(detail=False)
    def count(self, request: ApiRequest, project_id: str) -> Response:
        """Count the project's change requests by state."""
        return Response(count_states(project_id, self.caller))

    @extend_schema(operation_id="getProjectChangeRequestConfig", responses={200: PolicyRecord(many=True)})
    @action(detail=False)
    def config(self, request: ApiRequest, project_id: str) -> Response:
        """Say for each environment of the project whether changes need a change request."""
        links = ProjectEnvironment.objects.filter(project=project_id).select_related("environment")
        return Response(
            [
                {
                    "environment": link.environment_id,
                    "type": link.environment.type,
                    "changeRequestEnabled": link.required_approvals is not None,
                    "requiredApprovals": link.required_approvals,
                    "approvalRules": link.approval_rules,
                    "approverGroups": link.approver_groups,
                }
                for link in links.order_by("environment__sort_order", "environment_id")
            ]
        )

    @extend_schema(operation_id="getAvailableReviewers", responses={200: ReviewersRecord})
    @action(detail=False, url_path="available-reviewers/<str:environment>")
    def available_reviewers(self, request: ApiRequest, project_id: str, environment: str) -> Response:
        """List the people who may approve changes of the environment."""
        find_project_environment(project_id, environment)
        return _reviewers(list_approvers(project_id, environment))

    @extend_schema(operation_id="getChangeRequest", responses={200: ChangeRequestRecord})
    def retrieve(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """Get a change request."""
        return Response(request_document(self.find_request(project_id, request_id)))

    @extend_schema(operation_id="deleteChangeRequest", responses={200: None})
    def destroy(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """Discard your draft."""
        propose.delete_request(project_id, path_id(request_id, "Change request"), caller=self.caller)
        return Response()

    @extend_schema(
        operation_id="updateChangeRequestState", request=NewStateBody, responses={200: ChangeRequestRecord}
    )
    @action(detail=True, methods=["put"], url_path="state")
    def set_state(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """Send, approve, schedule, reject, apply or cancel a change request.

        Applying makes all its changes in one transaction, or none. It is refused if what a change was made from has
        been changed since. Approvals count while their givers may give them: `lapsed` says which do not. Neither
        programs nor people whose account the author has just made can approve (403). `Scheduled` has it applied at
        `scheduledAt`; `Approved` then cancels the schedule.
        `If-Match` is about its changes and, for an approval, their effect: a comment, for example, does not count.
        """
        body = self.validated(NewStateBody)
        changed = set_any_state(
            project_id,
            path_id(request_id, "Change request"),
            body["state"],
            text=body["comment"],
            at=body.get("scheduledAt"),
            expected=self.expected,
            caller=self.caller,
        )
        return Response(request_document(changed))

    @extend_schema(operation_id="revertChangeRequest", request=None, responses={200: ChangeRequestRecord})
    @action(detail=True, methods=["post"], url_path="revert")
    def revert(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """Send a request to review that does the inverse of an applied one."""
        made = revert_request(project_id, path_id(request_id, "Change request"), caller=self.caller)
        return Response(request_document(made))

    @extend_schema(operation_id="updateChangeRequestTitle", request=TitleBody, responses={204: None})
    @action(detail=True, methods=["put"], url_path="title")
    def set_title(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """Set the title of your change request."""
        title = self.validated(TitleBody)["title"]
        details.set_title(project_id, path_id(request_id, "Change request"), title, caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="getRequestedApprovers", responses={200: ReviewersRecord})
    @action(detail=True, url_path="approvers")
    def approvers(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """List the people who are asked for a review."""
        return _reviewers(self.find_request(project_id, request_id).reviewers.order_by("username"))

    @extend_schema(operation_id="setRequestedApprovers", request=ReviewersBody, responses={204: None})
    @approvers.mapping.put
    def set_approvers(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """Ask people for a review of your change request, instead of those asked before."""
        ids = self.validated(ReviewersBody)["reviewers"]
        details.set_reviewers(project_id, path_id(request_id, "Change request"), ids, caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="addChangeRequestComment", request=CommentBody, responses={204: None})
    @action(detail=True, methods=["post"], url_path="comments")
    def comment(self, request: ApiRequest, project_id: str, request_id: str) -> Response:
        """Comment on a change request."""
        text = self.validated(CommentBody)["text"]
        details.comment(project_id, path_id(request_id, "Change request"), text, caller=self.caller)
        return Response(status=204)


class ChangeViewSet(InProjectViewSet):
    """The changes of a request."""

    tags = TAGS
    lookup_url_kwarg = "change_id"
    permissions = {"update": None, "destroy": None}

    @extend_schema(operation_id="editChange", request=ChangeBody, responses={200: ChangeRequestRecord})
    def update(self, request: ApiRequest, project_id: str, request_id: str, change_id: str) -> Response:
        """Replace a change of your request, and another one of the same thing. Approvals are withdrawn.

        A change back to the start is removed, and with the last one the draft is discarded or the request cancelled.
        """
        proposed = ProposedChange(**self.validated(ChangeBody))
        changed = propose.edit_change(
            project_id,
            path_id(request_id, "Change request"),
            path_id(change_id, "Change"),
            proposed,
            caller=self.caller,
        )
        return Response(request_document(changed))

    @extend_schema(operation_id="discardChange", responses={200: None})
    def destroy(self, request: ApiRequest, project_id: str, request_id: str, change_id: str) -> Response:
        """Remove a change from your request. Approvals are withdrawn.

        With the last change a draft is discarded, and a request that was sent is cancelled.
        """
        propose.remove_change(
            project_id,
            path_id(request_id, "Change request"),
            path_id(change_id, "Change"),
            caller=self.caller,
        )
        return Response()


def _reviewers(people: Any) -> Response:
    return Response({"reviewers": [_reviewer(user) for user in people]})


def _reviewer(user: User) -> dict[str, Any]:
    return {
        "id": user.pk,
        "name": user.name,
        "username": user.username,
        "email": user.email or "",
        "imageUrl": "",
    }


EXAMPLE = OpenApiExample(
    "Half of the users",
    {
        "feature": "new-cart",
        "action": "addStrategy",
        "payload": {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "default"}},
    },
    request_only=True,
)


class EnvironmentChangeRequestViewSet(InProjectViewSet):
    """Below an environment of the project."""

    tags = ("Change requests",)
    permissions = {"create": None, "configure": POLICY_PERMISSIONS}

    def authorize(self, project_id: str, environment: str) -> None:
        super().authorize(project_id)
        find_project_environment(project_id, environment)

    @extend_schema(
        operation_id="createChangeRequest",
        request=ChangeBody,
        responses={200: ChangeRequestRecord},
        examples=[EXAMPLE],
    )
    def create(self, request: ApiRequest, project_id: str, environment: str) -> Response:
        """Add a change, or a list of changes, to your draft for the environment.

        Creates the draft if there is none. A second change of the same thing replaces the first, and one back to the
        start removes it: a draft without changes is discarded (`features` and `segments` are empty then). The changes
        are tried, and refused if they could not be applied.
        """
        changes = _read_changes(request.data)
        made = add_changes(project_id, environment, changes, may_discard=True, caller=self.caller)
        return Response(request_document(made))

    @extend_schema(operation_id="updateProjectChangeRequestConfig", request=PolicyBody, responses={200: None})
    @action(detail=False, methods=["put"], url_path="config")
    def configure(self, request: ApiRequest, project_id: str, environment: str) -> Response:
        """Set whether changes of the environment need a change request, and how many approvals.

        `approvalRules` require other numbers depending on a request's effect: the first matching rule applies. Only
        members of `approverGroups` may approve. Omitted members stay unchanged.
        """
        policy = self.validated(PolicyBody)
        number = policy["requiredApprovals"]
        approvals = (1 if number is None else number) if policy["changeRequestsEnabled"] else None
        set_policy(
            project_id,
            environment,
            approvals,
            rules=policy["approvalRules"],
            groups=policy["approverGroups"],
            caller=self.caller,
        )
        return Response()


def _read_changes(data: Any) -> list[ProposedChange]:
    """The changes of a body that is one, or a list of them. Raises DRF's ValidationError."""
    if not isinstance(data, list):
        single = ChangeBody(data=data)
        single.is_valid(raise_exception=True)
        return [ProposedChange(**single.validated_data)]
    body = ChangeBody(data=data, many=True, allow_empty=False)
    body.is_valid(raise_exception=True)
    return [ProposedChange(**change, path=f"[{index}]") for index, change in enumerate(body.validated_data)]

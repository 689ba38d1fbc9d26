"""/api/admin/projects/:projectId/environments/:environment/change-requests: drafts, and whether requests are needed."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from groups.authentication import ApiRequest
from projects.flags.environments.toggle import find_project_environment
from projects.projects.environments import POLICY_PERMISSIONS, set_policy
from projects.viewsets import InProjectViewSet
from releases.derive import ProposedChange
from releases.requests.documents import request_document
from releases.requests.propose import add_changes
from releases.requests.serializers import ChangeBody, ChangeRequestRecord, PolicyBody

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

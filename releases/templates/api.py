"""/api/admin/release-plan-templates, and /release-templates of a project: milestones for making plans."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import has_keyword
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.access import access_project
from releases.models import ReleaseTemplate
from releases.models.plans import make_ulid
from releases.templates import actions
from releases.templates.queries import (
    access_template,
    add_in_place,
    change_in_place,
    find_by_id,
    list_templates,
    template_document,
)
from releases.templates.serializers import (
    MilestoneBody,
    MilestoneRecord,
    MilestoneStrategyBody,
    MilestoneStrategyRecord,
    TemplateBody,
    TemplateChanges,
    TemplateRecord,
)

TAGS = ("Release Templates",)
IN_PROJECT = Permission.UPDATE_PROJECT_RELEASE_TEMPLATE
CREATE = (Permission.RELEASE_PLAN_TEMPLATE_CREATE, IN_PROJECT)
UPDATE = (Permission.RELEASE_PLAN_TEMPLATE_UPDATE, IN_PROJECT)
DELETE = (Permission.RELEASE_PLAN_TEMPLATE_DELETE, IN_PROJECT)
EXAMPLE = OpenApiExample(
    "A quarter for a day, then everybody",
    {
        "name": "Careful",
        "milestones": [
            {
                "name": "A quarter",
                "strategies": [{"name": "flexibleRollout", "parameters": {"rollout": "25"}}],
                "transitionCondition": {"intervalMinutes": 1440},
            },
            {
                "name": "Everybody",
                "strategies": [{"name": "flexibleRollout", "parameters": {"rollout": "100"}}],
            },
        ],
    },
    request_only=True,
)


class _Templates(ViewSet):
    tags = TAGS
    project_id: str | None = None
    template: ReleaseTemplate

    def authorize(self, project_id: str | None = None, template_id: str | None = None, **others: Any) -> None:
        if project_id is not None:
            access_project(self.caller, project_id)
        self.project_id = project_id
        if template_id is not None:
            self.template = access_template(self.caller, template_id, project_id)
        for permission in self.needed_permissions[:1]:
            actions.check_scope(self.caller, permission, IN_PROJECT, project_id)


class ReleaseTemplateViewSet(ETagMixin, _Templates):
    """The templates of all projects, or below one of them."""

    lookup_url_kwarg = "template_id"
    permissions = {"create": CREATE, "update": UPDATE, "destroy": DELETE, "archive": UPDATE}
    operation_ids = {
        "list": "getReleasePlanTemplates",
        "create": "createReleasePlanTemplate",
        "retrieve": "getReleasePlanTemplate",
        "update": "updateReleasePlanTemplate",
        "destroy": "deleteReleasePlanTemplate",
    }

    def get_current_document(self) -> Document:
        return template_document(self.template)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "include", str, enum=["root"], description="In a project: with the templates of all projects."
            )
        ],
        responses={200: TemplateRecord(many=True)},
    )
    def list(self, request: ApiRequest, project_id: str | None = None) -> Response:
        """List the release templates that are not archived, by name."""
        scopes = [project_id, *([None] if has_keyword(request, "include", "root") else [])]
        return Response([template_document(template) for template in list_templates(self.caller, *scopes)])

    @extend_schema(
        request=TemplateBody,
        responses={200: TemplateRecord},
        examples=[EXAMPLE],
    )
    def create(self, request: ApiRequest, **where: Any) -> Response:
        """Create a release template."""
        template = actions.create_template(
            self.validated(TemplateBody), project_id=self.project_id, caller=self.caller
        )
        return Response(actions.read_document(template))

    @extend_schema(responses={200: TemplateRecord})
    def retrieve(self, request: ApiRequest, **where: Any) -> Response:
        """Get a release template."""
        return Response(template_document(self.template))

    @extend_schema(request=TemplateChanges, responses={200: TemplateRecord})
    def update(self, request: ApiRequest, **where: Any) -> Response:
        """Change a release template. Plans that were made from it stay as they are."""
        values = self.validated(TemplateChanges)
        template = actions.update_template(
            self.template.pk, values, project_id=self.project_id, expected=self.expected, caller=self.caller
        )
        return Response(actions.read_document(template))

    @extend_schema(responses={200: None})
    def destroy(self, request: ApiRequest, **where: Any) -> Response:
        """Delete a release template. Plans that were made from it stay."""
        actions.delete_template(
            self.template.pk, project_id=self.project_id, expected=self.expected, caller=self.caller
        )
        return Response()


class ReleaseTemplateArchiveViewSet(_Templates):
    lookup_url_kwarg = "template_id"
    permissions = {"add": UPDATE}
    operation_ids = {"add": "archiveReleasePlanTemplate"}

    @extend_schema(request=None, responses={200: None})
    def add(self, request: ApiRequest, **where: Any) -> Response:
        """Archive a release template: no plan is made from it any more."""
        actions.archive_template(self.template.pk, project_id=self.project_id, caller=self.caller)
        return Response()


class _Milestones(_Templates):
    def change(self, edit: actions.Edit) -> list[Document]:
        """The milestones of the template after the change."""
        template = actions.edit_milestones(
            self.template.pk, edit, project_id=self.project_id, caller=self.caller
        )
        milestones: list[Document] = actions.read_document(template)["milestones"]
        return milestones

    def find(self, milestones: list[Document]) -> Document:
        """The milestone of the URL. Raises NotFound."""
        return find_by_id(milestones, self.kwargs["milestone_id"], "Milestone")


class TemplateMilestoneViewSet(_Milestones):
    lookup_url_kwarg = "milestone_id"
    permissions = {"create": UPDATE, "update": UPDATE, "destroy": UPDATE}
    operation_ids = {
        "create": "createReleasePlanMilestone",
        "update": "updateReleasePlanMilestone",
        "destroy": "deleteReleasePlanMilestone",
    }

    @extend_schema(request=MilestoneBody, responses={200: MilestoneRecord})
    def create(self, request: ApiRequest, **where: Any) -> Response:
        """Add a milestone to a release template: at the place `sortOrder`, or at the end."""
        milestone = {**self.validated(MilestoneBody), "id": make_ulid()}
        milestones = self.change(lambda listed: add_in_place(listed, milestone))
        return Response(find_by_id(milestones, milestone["id"], "Milestone"))

    @extend_schema(request=MilestoneBody, responses={200: MilestoneRecord})
    def update(self, request: ApiRequest, **where: Any) -> Response:
        """Change a milestone of a release template. `sortOrder` moves it."""
        body = self.validated(MilestoneBody)
        milestones = self.change(lambda listed: change_in_place(listed, self.find(listed), body))
        return Response(self.find(milestones))

    @extend_schema(responses={200: None})
    def destroy(self, request: ApiRequest, **where: Any) -> Response:
        """Remove a milestone from a release template, which keeps at least one."""
        self.change(lambda milestones: milestones.remove(self.find(milestones)))
        return Response()


class MilestoneStrategyViewSet(_Milestones):
    lookup_url_kwarg = "strategy_id"
    permissions = {"create": UPDATE, "update": UPDATE, "destroy": UPDATE}
    operation_ids = {
        "create": "addReleasePlanMilestoneStrategy",
        "update": "updateReleasePlanMilestoneStrategy",
        "destroy": "deleteReleasePlanMilestoneStrategy",
    }

    def find_strategy(self, strategies: list[Document]) -> Document:
        return find_by_id(strategies, self.kwargs["strategy_id"], "Strategy")

    @extend_schema(
        request=MilestoneStrategyBody,
        responses={200: MilestoneRecord},
    )
    def create(self, request: ApiRequest, **where: Any) -> Response:
        """Add a strategy to a milestone of a release template: at the place `sortOrder`, or at the end.

        Returns the milestone.
        """
        strategy = {**self.validated(MilestoneStrategyBody), "id": ""}
        return Response(
            self.find(self.change(lambda listed: add_in_place(self.find(listed)["strategies"], strategy)))
        )

    @extend_schema(
        request=MilestoneStrategyBody,
        responses={200: MilestoneStrategyRecord},
    )
    def update(self, request: ApiRequest, **where: Any) -> Response:
        """Change a strategy of a milestone of a release template. `sortOrder` moves it."""
        body = self.validated(MilestoneStrategyBody)
        body.setdefault("strategyName", body.get("name"))

        def edit(milestones: list[Document]) -> None:
            strategies = self.find(milestones)["strategies"]
            change_in_place(strategies, self.find_strategy(strategies), body)

        return Response(self.find_strategy(self.find(self.change(edit))["strategies"]))

    @extend_schema(responses={200: None})
    def destroy(self, request: ApiRequest, **where: Any) -> Response:
        """Remove a strategy from a milestone of a release template."""

        def edit(milestones: list[Document]) -> None:
            strategies = self.find(milestones)["strategies"]
            strategies.remove(self.find_strategy(strategies))

        self.change(edit)
        return Response()


class ProjectReleaseTemplateViewSet(ReleaseTemplateViewSet):
    operation_ids = {
        "list": "getProjectReleaseTemplates",
        "create": "createProjectReleaseTemplate",
        "retrieve": "getProjectReleaseTemplate",
        "update": "updateProjectReleaseTemplate",
        "destroy": "deleteProjectReleaseTemplate",
    }


class ProjectReleaseTemplateArchiveViewSet(ReleaseTemplateArchiveViewSet):
    operation_ids = {"add": "archiveProjectReleaseTemplate"}


class ProjectTemplateMilestoneViewSet(TemplateMilestoneViewSet):
    operation_ids = {
        "create": "createProjectReleaseMilestone",
        "update": "updateProjectReleaseMilestone",
        "destroy": "deleteProjectReleaseMilestone",
    }


class ProjectMilestoneStrategyViewSet(MilestoneStrategyViewSet):
    operation_ids = {
        "create": "addProjectReleaseMilestoneStrategy",
        "update": "updateProjectReleaseMilestoneStrategy",
        "destroy": "deleteProjectReleaseMilestoneStrategy",
    }

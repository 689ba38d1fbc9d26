"""/api/admin/playground/contexts: contexts that are saved under a name."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import path_id
from groups.authentication import ApiRequest
from playground.models import SavedContext
from playground.saved_contexts import actions
from playground.saved_contexts import serializers as schema
from playground.saved_contexts.queries import build_visible_document, build_visible_documents
from projects.access import check_project
from projects.project_scope import ScopedViewSet


class SavedContextViewSet(ETagMixin, ScopedViewSet):
    """Saved contexts: a project's for all its readers, those without a project for everyone."""

    tags = ("Playground",)
    lookup_url_kwarg = "context_id"
    permissions = {
        "create": actions.EVERYWHERE,
        "update": actions.EVERYWHERE,
        "destroy": actions.EVERYWHERE,
    }
    permission_in_project = actions.OWN_PROJECT
    saved: SavedContext

    def authorize(self, context_id: str | None = None) -> None:
        if context_id is not None:
            self.saved = actions.access_saved_context(self.caller, path_id(context_id, "Saved context"))
            self.check_permission(project=self.saved.project_id)
        else:
            self.check_permission(project=self.named_project if self.action == "create" else None)

    def get_current_document(self) -> dict[str, Any]:
        return build_visible_document(self.caller, self.saved)

    @extend_schema(
        operation_id="getSavedContexts",
        parameters=[
            OpenApiParameter(
                "project", str, description="Only those of this project and those of no project."
            )
        ],
        responses={200: schema.SavedContextList},
    )
    def list(self, request: ApiRequest) -> Response:
        """List the saved contexts that the caller may read, by name."""
        contexts = SavedContext.objects.readable_by(self.caller)
        if project := request.query_params.get("project"):
            check_project(self.caller, project)
            contexts = contexts.usable_in(project)
        return Response({"contexts": list(build_visible_documents(self.caller, contexts))})

    @extend_schema(
        operation_id="createSavedContext",
        request=schema.SavedContextBody,
        responses={201: schema.SavedContextRecord},
        examples=[
            OpenApiExample("A beta user", value=schema.REQUEST_EXAMPLE, request_only=True),
            OpenApiExample(
                "Created", value=schema.RESPONSE_EXAMPLE, response_only=True, status_codes=["201"]
            ),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        """Save a context under a name, for one project or for all.

        For a project, "update feature flags" there is enough; for all, "update context fields" is needed.
        """
        saved = actions.create_saved_context(self.validated(schema.SavedContextBody), caller=self.caller)
        headers = {"Location": f"contexts/{saved.pk}"}
        return Response(build_visible_document(self.caller, saved), status=201, headers=headers)

    @extend_schema(operation_id="getSavedContext", responses={200: schema.SavedContextRecord})
    def retrieve(self, request: ApiRequest, context_id: str) -> Response:
        """Get a saved context."""
        return Response(build_visible_document(self.caller, self.saved))

    @extend_schema(
        operation_id="updateSavedContext",
        request=schema.SavedContextChanges,
        responses={200: schema.SavedContextRecord},
    )
    def update(self, request: ApiRequest, context_id: str) -> Response:
        """Update a saved context. Omitted properties keep their values; the project stays."""
        changes, expected = self.validated(schema.SavedContextChanges), self.expected
        saved = actions.update_saved_context(self.saved.pk, changes, expected=expected, caller=self.caller)
        return Response(build_visible_document(self.caller, saved))

    @extend_schema(operation_id="removeSavedContext", responses={204: None})
    def destroy(self, request: ApiRequest, context_id: str) -> Response:
        """Delete a saved context."""
        actions.delete_saved_context(self.saved.pk, expected=self.expected, caller=self.caller)
        return Response(status=204)

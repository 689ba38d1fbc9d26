"""/api/admin/projects/:projectId/features: list, create, change, archive, move and clone flags.

/api/admin/projects/:projectId/features/:name/link: add, change and remove links of a flag.

/api/admin/feature-types: flag types and their expected lifetimes.

/api/admin/search/features: search flags across projects. /api/admin/flag-creators: who created flags.
/api/admin/flag-views: saved views.
"""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import (
    Body,
    PatchOperation,
    Texts,
    make_patch_example,
    patch_object,
    path_id,
    validate_body,
)
from groups.people.serializers import AccountName
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.access import check_project
from projects.flags import actions
from projects.flags import actions as flags
from projects.flags.archive import actions as archiving
from projects.flags.copies import clone as cloning
from projects.flags.copies import move as moving
from projects.flags.flag_document import read_flag_document
from projects.flags.lists.queries import MAX_CREATORS, list_flag_creators
from projects.flags.lists.search import FlagFilter
from projects.flags.lists.views import MAX_NAME, MAX_QUERY, delete_view, list_views, save_view
from projects.flags.queries import (
    list_flag_summaries,
    make_metadata_answer,
    make_metadata_document,
    search_documents,
)
from projects.flags.serializers import (
    CloneBody,
    EnvironmentSummary,
    FlagBody,
    FlagChanges,
    FlagMetadata,
    FlagRecord,
    FlagSummary,
    FlagSummaryList,
    LinkBody,
    MoveBody,
    NewNameBody,
    OwnerRecord,
    Person,
    StageRecord,
)
from projects.flags.types.actions import set_lifetime
from projects.history.definitions_at import make_seen_version
from projects.models import Flag, FlagType, Project
from projects.project_scope import InProjectViewSet, OnFlagViewSet

NEW_FLAG = OpenApiExample(
    "A flag for a release",
    {
        "name": "checkout-redesign",
        "type": "release",
        "description": "The new checkout",
        "impressionData": False,
    },
    request_only=True,
)
PATCHABLE = ("type", "description", "stale", "impressionData", "owner")


class FlagViewSet(ETagMixin, OnFlagViewSet):
    tags = ("Features",)
    lookup_url_kwarg = "name"
    permissions = {
        "create": Permission.CREATE_FEATURE,
        "update": Permission.UPDATE_FEATURE,
        "partial_update": Permission.UPDATE_FEATURE,
        "destroy": Permission.DELETE_FEATURE,
        "change_project": Permission.MOVE_FEATURE_TOGGLE,
        "clone": Permission.CREATE_FEATURE,
    }

    def get_current_document(self) -> dict[str, Any]:
        return make_metadata_document(self.flag)

    @extend_schema(operation_id="getFeatures", responses={200: FlagSummaryList})
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the active flags of a project, sorted by name."""
        flags = list(Flag.objects.active().filter(project=self.project))
        return Response({"version": 2, "features": list_flag_summaries(flags, caller=self.caller)})

    @extend_schema(
        operation_id="createFeature", request=FlagBody, responses={201: FlagMetadata}, examples=[NEW_FLAG]
    )
    def create(self, request: ApiRequest, project_id: str) -> Response:
        """Create a flag that is off in every environment of the project."""
        values = self.validated(FlagBody)
        values["tags"] = [(tag["type"], tag["value"]) for tag in values.get("tags") or []]
        flag = flags.create_flag(project_id, flags.NewFlag(**values), caller=self.caller)
        return Response(make_metadata_answer(flag), status=201)

    @extend_schema(
        operation_id="getFeature",
        parameters=[
            OpenApiParameter("variantEnvironments", bool, description="Accepted; variants are always shown.")
        ],
        responses={200: FlagRecord},
    )
    def retrieve(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Get an active flag with its environments, strategies, variants, dependencies and links."""
        document = read_flag_document(self.flag, caller=self.caller)
        # The details, for changes of these, and everything that a revert may change.
        whole = make_seen_version(document, [place["name"] for place in document["environments"]])
        self.version = f"{self.version}.{hash_document(whole)}"
        return Response(document)

    @extend_schema(operation_id="updateFeature", request=FlagChanges, responses={200: FlagMetadata})
    def update(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Update a flag. Omitted properties keep their values; the name cannot be changed."""
        changes, expected = self.validated(FlagChanges), self.expected
        flag = flags.update_flag(project_id, name, changes, expected=expected, caller=self.caller)
        return Response(make_metadata_answer(flag))

    @extend_schema(
        operation_id="patchFeature",
        request=PatchOperation(many=True),
        responses={200: FlagMetadata},
        examples=[make_patch_example("/description", "The new checkout")],
    )
    def partial_update(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Change the flag's type, description, stale, impressionData or owner with a JSON Patch."""
        flag = flags.edit_flag(
            project_id,
            name,
            lambda before: _read_patch(before, request.data),
            expected=self.expected,
            caller=self.caller,
        )
        return Response(make_metadata_answer(flag))

    @extend_schema(operation_id="archiveFeature", responses={202: None})
    def destroy(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Archive the flag, which turns it off everywhere. It can be revived or permanently deleted."""
        archiving.archive_flags(project_id, [name], expected=self.expected, caller=self.caller)
        return Response(status=202)

    @extend_schema(operation_id="changeProject", request=MoveBody, responses={200: None})
    @action(detail=True, methods=["post"], url_path="changeProject")
    def change_project(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Move the flag, with all its data, to another project."""
        moving.move_flag(project_id, name, self.validated(MoveBody)["newProjectId"], caller=self.caller)
        return Response()

    @extend_schema(operation_id="cloneFeature", request=CloneBody, responses={201: FlagMetadata})
    @action(detail=True, methods=["post"])
    def clone(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Copy the flag with its strategies, variants and tags. The copy is off in every environment."""
        values = self.validated(CloneBody)
        flag = cloning.clone_flag(
            project_id,
            name,
            values["name"],
            replace_group_id=values["replaceGroupId"],
            caller=self.caller,
        )
        return Response(make_metadata_answer(flag), status=201)


def _read_patch(before: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The changes made by a JSON Patch, by model field. Raises ValidationError."""
    after = patch_object(before, operations, PATCHABLE)
    changed = [key for key in PATCHABLE if before.get(key) != after.get(key)]
    return validate_body(FlagChanges(data={key: after.get(key) for key in changed}))


class FlagNameViewSet(ViewSet):
    tags = ("Features",)
    permissions = {"validate": None}

    @extend_schema(operation_id="validateFeature", request=NewNameBody, responses={200: None})
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether a flag with this name could be created."""
        values = self.validated(NewNameBody)
        project = Project()
        if values.get("projectId"):
            project = check_project(self.caller, values["projectId"], "projectId")
        flags.check_new_name(project, values["name"], caller=self.caller)
        return Response()


EXAMPLE = OpenApiExample(
    "A ticket", {"url": "https://tracker.example.com/SHOP-12", "title": "SHOP-12"}, request_only=True
)


class LinkViewSet(OnFlagViewSet):
    tags = ("Feature links",)
    lookup_url_kwarg = "link_id"
    permissions = {
        "create": Permission.UPDATE_FEATURE,
        "update": Permission.UPDATE_FEATURE,
        "destroy": Permission.UPDATE_FEATURE,
    }

    @extend_schema(
        operation_id="createFeatureLink", request=LinkBody, responses={204: None}, examples=[EXAMPLE]
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Add a link. `example.com` becomes `https://example.com`."""
        link = self.validated(LinkBody)
        actions.add_link(project_id, name, link["url"], link.get("title"), caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="updateFeatureLink", request=LinkBody, responses={204: None})
    def update(self, request: ApiRequest, project_id: str, name: str, link_id: str) -> Response:
        """Replace the URL and the title of a link."""
        link = self.validated(LinkBody)
        actions.update_link(project_id, name, link_id, link["url"], link.get("title"), caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="deleteFeatureLink", responses={204: None})
    def destroy(self, request: ApiRequest, project_id: str, name: str, link_id: str) -> Response:
        """Remove a link."""
        actions.remove_link(project_id, name, link_id, caller=self.caller)
        return Response(status=204)


MAX_LIFETIME = 36_500


class FlagTypeRecord(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    lifetimeDays = serializers.IntegerField(
        source="lifetime_days", allow_null=True, help_text="null: unlimited."
    )


class FlagTypeList(serializers.Serializer):
    version = serializers.IntegerField()
    types = FlagTypeRecord(many=True)


class LifetimeBody(Body):
    lifetimeDays = serializers.IntegerField(
        allow_null=True, min_value=0, max_value=MAX_LIFETIME, help_text="null or 0: unlimited."
    )


class FlagTypeViewSet(ViewSet):
    tags = ("Feature types",)
    lookup_url_kwarg = "type_id"
    permissions = {"lifetime": Permission.ADMIN}

    @extend_schema(operation_id="getAllFeatureTypes", responses={200: FlagTypeList})
    def list(self, request: ApiRequest) -> Response:
        """List the types that a flag can have."""
        types = FlagTypeRecord(FlagType.objects.all(), many=True).data
        return Response({"version": 1, "types": types})

    @extend_schema(
        operation_id="updateFeatureTypeLifetime",
        request=LifetimeBody,
        responses={200: FlagTypeRecord},
        examples=[OpenApiExample("Seven weeks", {"lifetimeDays": 49}, request_only=True)],
    )
    @action(detail=True, methods=["put"])
    def lifetime(self, request: ApiRequest, type_id: str) -> Response:
        """Set the expected lifetime of flags of this type. Older flags are not changed."""
        days = self.validated(LifetimeBody)["lifetimeDays"]
        return Response(FlagTypeRecord(set_lifetime(type_id, days or None, caller=self.caller)).data)


class FoundEnvironment(EnvironmentSummary):
    yes = serializers.IntegerField()
    no = serializers.IntegerField()
    changeRequestIds = serializers.ListField(
        child=serializers.IntegerField(), help_text="Always empty: open change requests are not listed here."
    )


class FoundFlag(FlagSummary):
    """A flag in the search results."""

    environments = FoundEnvironment(many=True)
    project = serializers.CharField()
    archivedAt = serializers.DateTimeField(allow_null=True)
    dependencyType = serializers.ChoiceField(choices=["parent", "child"], allow_null=True)
    segments = Texts(help_text="Names of the segments that its strategies use.")
    createdBy = Person()
    owner = OwnerRecord(required=False, help_text="Absent without one.")
    lifecycle = StageRecord(required=False, help_text="The current stage.")


class FoundFlags(serializers.Serializer):
    features = FoundFlag(many=True)
    total = serializers.IntegerField(help_text="Number of flags that match, on all pages.")


class SearchViewSet(ViewSet):
    @extend_schema(
        operation_id="searchFeatures",
        tags=["Search"],
        parameters=FlagFilter.parameters(),
        responses={200: FoundFlags},
    )
    @action(detail=False)
    def features(self, request: ApiRequest) -> Response:
        """Search the flags that the caller can read.

        Archived flags are found only with archived=IS:true or lifecycle=IS:archived.
        """
        search = FlagFilter(request.query_params, Flag.objects.readable_by(self.caller))
        flags, total = search.page(self.caller.id)
        return Response({"features": search_documents(flags, caller=self.caller), "total": total})


class CreatorsQuery(serializers.Serializer):
    limit = serializers.IntegerField(min_value=1, max_value=MAX_CREATORS, default=MAX_CREATORS)


class FlagCreatorViewSet(ViewSet):
    tags = ("Features",)

    @extend_schema(
        operation_id="getFlagCreators", parameters=[CreatorsQuery], responses={200: AccountName(many=True)}
    )
    def list(self, request: ApiRequest) -> Response:
        """List the accounts that created a flag that the caller can read, archived flags included."""
        query = CreatorsQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        creators = list_flag_creators(Flag.objects.readable_by(self.caller), **query.validated_data)
        return Response(AccountName(creators, many=True).data)


class ViewBody(Body):
    name = serializers.CharField(max_length=MAX_NAME)
    query = serializers.CharField(
        max_length=MAX_QUERY, help_text="Parameters of the console's list, such as `owner=mine&sort=name`."
    )


class ViewRecord(ViewBody):
    id = serializers.IntegerField()


class FlagViewViewSet(ViewSet):
    tags = ("Favorites",)
    lookup_url_kwarg = "view_id"
    permissions = {"create": None, "destroy": None}

    @extend_schema(operation_id="getFlagViews", responses={200: ViewRecord(many=True)})
    def list(self, request: ApiRequest) -> Response:
        """List the caller's saved views of the list of all flags."""
        return Response(ViewRecord(list_views(self.caller), many=True).data)

    @extend_schema(operation_id="saveFlagView", request=ViewBody, responses={200: ViewRecord})
    def create(self, request: ApiRequest) -> Response:
        """Save a view of the list of all flags for the caller, in place of one with the same name."""
        view = save_view(**self.validated(ViewBody), caller=self.caller)
        return Response(ViewRecord(view).data)

    @extend_schema(operation_id="deleteFlagView", responses={204: None})
    def destroy(self, request: ApiRequest, view_id: str) -> Response:
        """Delete one of the caller's views."""
        delete_view(path_id(view_id, "View"), caller=self.caller)
        return Response(status=204)


class ProjectFlagCreatorViewSet(InProjectViewSet):
    tags = ("Projects",)

    @extend_schema(operation_id="getProjectFlagCreators", responses={200: AccountName(many=True)})
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the accounts that created a flag of the project, archived flags included."""
        creators = list_flag_creators(Flag.objects.filter(project=self.project))
        return Response(AccountName(creators, many=True).data)

"""/api/admin/features/:name/tags, /api/admin/projects/:projectId/tags and /api/admin/tags: flag tags."""

from collections.abc import Iterable, Mapping
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.errors import NotFound
from groups.viewsets import ApiRequest, Caller, Permission, ViewSet
from projects.flags import actions
from projects.flags.queries import tag_document
from projects.flags.serializers import NamesBody, TagBody, TagChanges, TagList
from projects.models import Flag, FlagTag
from projects.project_scope import InProjectViewSet
from projects.tag_types import actions as known
from projects.tag_types.actions import access_tag_type

EXAMPLE = OpenApiExample("A tag", {"type": "simple", "value": "checkout"}, request_only=True)


class ManyTagsBody(NamesBody):
    tags = TagChanges()


class OneTag(serializers.Serializer):
    version = serializers.IntegerField()
    tag = TagBody()


class FlagTagViewSet(ViewSet):
    """The tags of one flag, which is found by name without its project."""

    tags = ("Tags",)
    permissions = {
        "create": Permission.UPDATE_FEATURE,
        "replace": Permission.UPDATE_FEATURE,
        "remove": Permission.UPDATE_FEATURE,
    }
    flag: Flag

    def authorize(self, name: str, **kwargs: str) -> None:
        self.flag = actions.access_named_flag(self.caller, name)
        self.check_permission(project=self.flag.project_id)

    @extend_schema(operation_id="listTags", responses={200: TagList})
    def list(self, request: ApiRequest, name: str) -> Response:
        """List the tags of a flag, which may be archived."""
        return _answer_tags(self.flag)

    @extend_schema(operation_id="addTag", request=TagBody, responses={201: TagBody}, examples=[EXAMPLE])
    def create(self, request: ApiRequest, name: str) -> Response:
        """Add a tag to the flag. Adding a tag that the flag has is not an error."""
        tag = self.validated(TagBody)
        actions.change_tags(name, _read_pairs([tag]), caller=self.caller)
        return Response(tag, status=201)

    @extend_schema(operation_id="updateTags", request=TagChanges, responses={200: TagList})
    def replace(self, request: ApiRequest, name: str) -> Response:
        """Add and remove several tags at once."""
        return _answer_tags(
            actions.change_tags(name, *_read_changes(self.validated(TagChanges)), caller=self.caller)
        )

    @extend_schema(operation_id="removeTag", responses={200: None})
    @action(detail=False, methods=["delete"], url_path="<str:tag_type>/<text:value>")
    def remove(self, request: ApiRequest, name: str, tag_type: str, value: str) -> Response:
        """Remove a tag from the flag. Removing a tag that the flag does not have is not an error."""
        actions.change_tags(name, [], [(tag_type, value)], caller=self.caller)
        return Response()


class BulkTagViewSet(InProjectViewSet):
    """The tags of several flags of a project.

    POST works like PUT, for clients of version 1 of the API.
    """

    tags = ("Tags",)
    permissions = {"replace": Permission.UPDATE_FEATURE, "create": Permission.UPDATE_FEATURE}

    @extend_schema(operation_id="addTagToFeatures", request=ManyTagsBody, responses={200: None})
    def replace(self, request: ApiRequest, project_id: str) -> Response:
        """Add tags to several flags of the project, and remove others. Names that are no active flags are refused."""
        values = self.validated(ManyTagsBody)
        names, tags = {project_id: values["features"]}, _read_changes(values["tags"])
        actions.change_tags_of_many(names, *tags, caller=self.caller)
        return Response()

    @extend_schema(exclude=True)
    def create(self, request: ApiRequest, project_id: str) -> Response:
        return self.replace(request, project_id)


class TagViewSet(ViewSet):
    """The tags that can be chosen, whether or not a flag has them."""

    tags = ("Tags",)
    permissions = {"create": Permission.UPDATE_FEATURE, "delete_tag": Permission.UPDATE_FEATURE}

    def authorize(self, **kwargs: str) -> None:
        """Changing tags needs ``UPDATE_FEATURE`` in at least one project. Raises NoAccess."""
        if self.needed_permissions:
            self.caller.check_anywhere(self.needed_permissions)

    @extend_schema(operation_id="getTags", responses={200: TagList})
    def list(self, request: ApiRequest) -> Response:
        """List all tags that were created, or that are used by a flag the caller can read."""
        return _answer(_list_known_tags(self.caller))

    @extend_schema(operation_id="createTag", request=TagBody, responses={201: OneTag}, examples=[EXAMPLE])
    def create(self, request: ApiRequest) -> Response:
        """Create a tag without adding it to a flag. Needs `UPDATE_FEATURE` in at least one project."""
        tag = self.validated(TagBody)
        known.create_tag(tag["type"], tag["value"], caller=self.caller)
        return _answer_tag(tag["type"], tag["value"], status=201)

    @extend_schema(operation_id="getTagsByType", responses={200: TagList})
    @action(detail=False, url_path="<str:tag_type>")
    def of_type(self, request: ApiRequest, tag_type: str) -> Response:
        """List the tags of this type."""
        access_tag_type(tag_type)
        return _answer([tag for tag in _list_known_tags(self.caller) if tag["type"] == tag_type])

    @extend_schema(operation_id="getTag", responses={200: OneTag})
    @action(detail=False, url_path="<str:tag_type>/<text:value>")
    def one(self, request: ApiRequest, tag_type: str, value: str) -> Response:
        """Get a tag."""
        if (tag_type, value) not in known.list_known_tags(self.caller):
            raise NotFound(f"Tag {tag_type}:{value} not found.")
        return _answer_tag(tag_type, value)

    @extend_schema(operation_id="deleteTag", responses={200: None})
    @one.mapping.delete
    def delete_tag(self, request: ApiRequest, tag_type: str, value: str) -> Response:
        """Delete the tag and remove it from every flag that the caller can read.

        Needs `UPDATE_FEATURE` in the projects of all these flags.
        """
        known.delete_tag(tag_type, value, caller=self.caller)
        return Response()


def _answer_tags(flag: Flag) -> Response:
    tags = FlagTag.objects.filter(flag=flag).select_related("tag_type")
    return _answer([tag_document(tag) | {"color": tag.tag_type.color} for tag in tags])


def _answer(tags: list[dict[str, Any]]) -> Response:
    return Response({"version": 1, "tags": tags})


def _answer_tag(kind: str, value: str, *, status: int = 200) -> Response:
    return Response({"version": 1, "tag": {"type": kind, "value": value}}, status=status)


def _list_known_tags(caller: Caller) -> list[dict[str, Any]]:
    return [{"type": kind, "value": value} for kind, value in known.list_known_tags(caller)]


def _read_changes(values: Mapping[str, Any]) -> tuple[list[actions.Tag], list[actions.Tag]]:
    return _read_pairs(values.get("addedTags", [])), _read_pairs(values.get("removedTags", []))


def _read_pairs(tags: Iterable[Mapping[str, str]]) -> list[actions.Tag]:
    return [(tag["type"], tag["value"]) for tag in tags]

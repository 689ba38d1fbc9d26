"""/api/admin/features/:name/tags, /api/admin/tags and /api/admin/projects/:projectId/tags."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import NotFound
from flagadmin.http.fields import validated
from flagadmin.http.openapi import refusals
from groups.access import Caller
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_project
from projects.flags import tags as actions
from projects.flags.queries import tag_document
from projects.flags.serializers import NamesBody, TagBody, TagChanges, TagList
from projects.models import Flag, FlagTag, TagType
from projects.tag_types import tags as known

TAGS = ["Tags"]
EXAMPLE = OpenApiExample("A tag", {"type": "simple", "value": "checkout"}, request_only=True)


class ManyTagsBody(NamesBody):
    tags = TagChanges()


class OneTag(serializers.Serializer):
    version = serializers.IntegerField()
    tag = TagBody()


class FlagTagsView(APIView):
    @extend_schema(operation_id="listTags", tags=TAGS, responses={200: TagList} | refusals(403, 404))
    def get(self, request: ApiRequest, name: str) -> Response:
        """The tags of a flag, also of an archived one."""
        return _tags_of(actions.access_named_flag(request.user, name))

    @extend_schema(
        operation_id="addTag",
        tags=TAGS,
        request=TagBody,
        responses={201: TagBody} | refusals(400, 403, 404, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest, name: str) -> Response:
        """Add a tag; one that is there already is no error."""
        actions.access_named_flag(request.user, name, Permission.UPDATE_FEATURE)
        tag = validated(TagBody(data=request.data))
        actions.change_tags(name, _pairs([tag]), caller=request.user)
        return Response(tag, status=201)

    @extend_schema(
        operation_id="updateTags",
        tags=TAGS,
        request=TagChanges,
        responses={200: TagList} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, name: str) -> Response:
        """Add and remove tags in one step."""
        actions.access_named_flag(request.user, name, Permission.UPDATE_FEATURE)
        changes = validated(TagChanges(data=request.data))
        flag = actions.change_tags(name, *_changes(changes), caller=request.user)
        return _tags_of(flag)


class FlagTagView(APIView):
    @extend_schema(operation_id="removeTag", tags=TAGS, responses={200: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, name: str, tag_type: str, value: str) -> Response:
        """Remove a tag; one that is not there is no error."""
        actions.change_tags(name, [], [(tag_type, value)], caller=request.user)
        return Response()


class ProjectTagsView(APIView):
    @extend_schema(
        operation_id="addTagToFeatures",
        tags=TAGS,
        request=ManyTagsBody,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, project_id: str) -> Response:
        """Add tags to many flags of the project, and remove some. Unknown names are passed over."""
        access_project(request.user, project_id, Permission.UPDATE_FEATURE)
        values = validated(ManyTagsBody(data=request.data))
        actions.change_tags_of_many(
            project_id, values["features"], *_changes(values["tags"]), caller=request.user
        )
        return Response()

    @extend_schema(exclude=True)
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """PUT as version 1 called it."""
        return self.put(request, project_id)


class TagsView(APIView):
    @extend_schema(operation_id="getTags", tags=TAGS, responses={200: TagList} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """Every tag that was created, or is in use on a flag the caller may read, once."""
        return _answer(_known(request.user))

    @extend_schema(
        operation_id="createTag",
        tags=TAGS,
        request=TagBody,
        responses={201: OneTag} | refusals(400, 403, 409, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest) -> Response:
        """Create a tag to choose from, on no flag yet. Needs `UPDATE_FEATURE` in some project."""
        known.check_may_change_tags(request.user)
        tag = validated(TagBody(data=request.data))
        known.create_tag(tag["type"], tag["value"], caller=request.user)
        return _one(tag["type"], tag["value"], status=201)


class TagsOfTypeView(APIView):
    @extend_schema(operation_id="getTagsByType", tags=TAGS, responses={200: TagList} | refusals(403, 404))
    def get(self, request: ApiRequest, tag_type: str) -> Response:
        """The tags of this type."""
        if not TagType.objects.filter(pk=tag_type).exists():
            raise NotFound(f"There is no tag type {tag_type}.")
        return _answer([tag for tag in _known(request.user) if tag["type"] == tag_type])


class TagView(APIView):
    @extend_schema(operation_id="getTag", tags=TAGS, responses={200: OneTag} | refusals(403, 404))
    def get(self, request: ApiRequest, tag_type: str, value: str) -> Response:
        """One tag."""
        if (tag_type, value) not in known.known_tags(request.user):
            raise NotFound(f"There is no tag {tag_type}:{value}.")
        return _one(tag_type, value)

    @extend_schema(operation_id="deleteTag", tags=TAGS, responses={200: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, tag_type: str, value: str) -> Response:
        """Delete the tag and take it off every flag the caller may read. Needs `UPDATE_FEATURE` for all of them."""
        known.delete_tag(tag_type, value, caller=request.user)
        return Response()


def _tags_of(flag: Flag) -> Response:
    tags = FlagTag.objects.filter(flag=flag).select_related("tag_type")
    return _answer([tag_document(tag) | {"color": tag.tag_type.color} for tag in tags])


def _answer(tags: list[dict[str, Any]]) -> Response:
    return Response({"version": 1, "tags": tags})


def _one(kind: str, value: str, *, status: int = 200) -> Response:
    return Response({"version": 1, "tag": {"type": kind, "value": value}}, status=status)


def _known(caller: Caller) -> list[dict[str, Any]]:
    return [{"type": kind, "value": value} for kind, value in known.known_tags(caller)]


def _changes(values: Mapping[str, Any]) -> tuple[list[actions.Tag], list[actions.Tag]]:
    return _pairs(values.get("addedTags", [])), _pairs(values.get("removedTags", []))


def _pairs(tags: Iterable[Mapping[str, str]]) -> list[actions.Tag]:
    return [(tag["type"], tag["value"]) for tag in tags]


urlpatterns = [
    path("features/<str:name>/tags", FlagTagsView.as_view()),
    path("features/<str:name>/tags/<str:tag_type>/<path:value>", FlagTagView.as_view()),
    path("projects/<str:project_id>/tags", ProjectTagsView.as_view()),
    path("tags", TagsView.as_view()),
    path("tags/<str:tag_type>", TagsOfTypeView.as_view()),
    path("tags/<str:tag_type>/<path:value>", TagView.as_view()),
]

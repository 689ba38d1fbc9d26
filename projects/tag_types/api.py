"""/api/admin/tag-types: the kinds of tags that flags may have."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.db.statements import Compiled
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.errors import NameExists
from flagadmin.core.http.fields import Body, NullableText
from flagadmin.core.http.openapi import refusal
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.models import TagType
from projects.tag_types import actions


class TagTypeChanges(Body):
    description = NullableText(required=False)
    icon = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    color = serializers.CharField(required=False, allow_null=True, help_text="For example #FFFFFF.")


class TagTypeBody(TagTypeChanges):
    name = serializers.CharField(help_text="2 to 50 characters: letters, digits and - . _ ~")


class OneTagType(serializers.Serializer):
    version = serializers.IntegerField(help_text="Version of this format: 1.")
    tagType = TagTypeBody()


class TagTypeList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Version of this format: 1.")
    tagTypes = TagTypeBody(many=True)


class TagTypeVerdict(serializers.Serializer):
    valid = serializers.BooleanField()
    tagType = TagTypeBody()


_TAG_TYPES = Compiled(TagType.objects.all)


class TagTypeViewSet(ETagMixin, ViewSet):
    tags = ("Tags",)
    lookup_url_kwarg = "name"
    permissions = {
        "create": Permission.CREATE_TAG_TYPE,
        "validate": Permission.CREATE_TAG_TYPE,
        "update": Permission.UPDATE_TAG_TYPE,
        "destroy": Permission.DELETE_TAG_TYPE,
    }
    tag_type: TagType

    def authorize(self, name: str | None = None) -> None:
        if name is not None:
            self.tag_type = actions.access_tag_type(name)
        self.check_permission()

    def get_current_document(self) -> Document:
        return self.tag_type.document()

    @extend_schema(operation_id="getTagTypes", responses={200: TagTypeList})
    def list(self, request: ApiRequest) -> Response:
        """List the tag types."""
        tag_types = [tag_type.document() for tag_type in _TAG_TYPES.read()]
        return Response({"version": 1, "tagTypes": tag_types})

    @extend_schema(operation_id="createTagType", request=TagTypeBody, responses={201: TagTypeBody})
    def create(self, request: ApiRequest) -> Response:
        """Create a tag type."""
        created = actions.create_tag_type(self.validated(TagTypeBody), caller=self.caller)
        headers = {"Location": f"tag-types/{created.name}"}
        return Response(created.document(), status=201, headers=headers)

    @extend_schema(operation_id="validateTagType", request=TagTypeBody, responses={200: TagTypeVerdict})
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether this tag type could be created."""
        tag_type = TagType(**self.validated(TagTypeBody))
        actions.check_tag_type(tag_type)
        if TagType.objects.filter(pk=tag_type.name).exists():
            raise NameExists(f"There already exists a tag type with the name {tag_type.name}.")
        return Response({"valid": True, "tagType": tag_type.document()})

    @extend_schema(operation_id="getTagType", responses={200: OneTagType})
    def retrieve(self, request: ApiRequest, name: str) -> Response:
        """Get a tag type."""
        return Response({"version": 1, "tagType": self.tag_type.document()})

    @extend_schema(operation_id="updateTagType", request=TagTypeChanges, responses={200: None})
    def update(self, request: ApiRequest, name: str) -> Response:
        """Update a tag type. Omitted properties keep their values; the name cannot be changed."""
        changes = self.validated(TagTypeChanges)
        actions.update_tag_type(name, changes, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(
        operation_id="deleteTagType",
        responses={200: None, 409: refusal(409, "Flags have tags of this type; the message names them.")},
    )
    def destroy(self, request: ApiRequest, name: str) -> Response:
        """Delete the tag type, unless flags have tags of this type."""
        actions.delete_tag_type(name, expected=self.expected, caller=self.caller)
        return Response()

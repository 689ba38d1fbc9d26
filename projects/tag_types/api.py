"""/api/admin/tag-types: the kinds of tags that flags may have."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import NameExists
from flagadmin.http.fields import Body, validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.models import TagType
from projects.tag_types import actions
from projects.tag_types.documents import tag_type_document

TAGS = ["Tags"]


class TagTypeChanges(Body):
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    icon = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    color = serializers.CharField(required=False, allow_null=True, help_text="As #FFFFFF.")


class TagTypeBody(TagTypeChanges):
    name = serializers.CharField(help_text="2 to 50 of letters, digits and - . _ ~")


class OneTagType(serializers.Serializer):
    version = serializers.IntegerField(help_text="Of this format: 1.")
    tagType = TagTypeBody()


class TagTypeList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Of this format: 1.")
    tagTypes = TagTypeBody(many=True)


class TagTypeVerdict(serializers.Serializer):
    valid = serializers.BooleanField()
    tagType = TagTypeBody()


def _values(body: serializers.Serializer) -> dict[str, Any]:
    values = validated(body)
    if "description" in values:
        values["description"] = values["description"] or ""
    return values


class TagTypesView(APIView):
    @extend_schema(operation_id="getTagTypes", tags=TAGS, responses={200: TagTypeList} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        tag_types = [tag_type_document(tag_type) for tag_type in TagType.objects.all()]
        return Response({"version": 1, "tagTypes": tag_types})

    @extend_schema(
        operation_id="createTagType",
        tags=TAGS,
        request=TagTypeBody,
        responses={201: TagTypeBody} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        request.user.check(Permission.CREATE_TAG_TYPE)
        created = actions.create_tag_type(_values(TagTypeBody(data=request.data)), caller=request.user)
        headers = {"Location": f"tag-types/{created.name}"}
        return Response(tag_type_document(created), status=201, headers=headers)


class ValidateTagTypeView(APIView):
    @extend_schema(
        operation_id="validateTagType",
        tags=TAGS,
        request=TagTypeBody,
        responses={200: TagTypeVerdict} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether this tag type could be created."""
        request.user.check(Permission.CREATE_TAG_TYPE)
        tag_type = TagType(**_values(TagTypeBody(data=request.data)))
        actions.check_tag_type(tag_type)
        if TagType.objects.filter(pk=tag_type.name).exists():
            raise NameExists(f"There already exists a tag type with the name {tag_type.name}.")
        return Response({"valid": True, "tagType": tag_type_document(tag_type)})


class TagTypeView(APIView):
    @extend_schema(operation_id="getTagType", tags=TAGS, responses={200: OneTagType} | refusals(403, 404))
    def get(self, request: ApiRequest, name: str) -> Response:
        return Response({"version": 1, "tagType": tag_type_document(actions.access_tag_type(name))})

    @extend_schema(
        operation_id="updateTagType",
        tags=TAGS,
        request=TagTypeChanges,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, name: str) -> Response:
        """Change what is given; the name stays."""
        actions.access_tag_type(name)
        request.user.check(Permission.UPDATE_TAG_TYPE)
        actions.update_tag_type(name, _values(TagTypeChanges(data=request.data)), caller=request.user)
        return Response()

    @extend_schema(
        operation_id="deleteTagType",
        tags=TAGS,
        responses={200: None}
        | refusals(403, 404, descriptions={409: "Flags have tags of this type; the message names them."}),
    )
    def delete(self, request: ApiRequest, name: str) -> Response:
        actions.delete_tag_type(name, caller=request.user)
        return Response()


urlpatterns = [
    path("tag-types", TagTypesView.as_view()),
    path("tag-types/validate", ValidateTagTypeView.as_view()),
    path("tag-types/<str:name>", TagTypeView.as_view()),
]

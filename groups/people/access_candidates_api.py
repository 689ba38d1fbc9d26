"""/api/admin/user-admin/access and /admin-count: who can be given access, and who may do everything."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.models import Group, User
from groups.people.last_admin import admins
from groups.permissions import BuiltIn, Permission

TAGS = ["People"]
GIVERS = (Permission.ADMIN, Permission.UPDATE_PROJECT, Permission.PROJECT_USER_ACCESS_WRITE)


class CandidateUser(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField(required=False)
    username = serializers.CharField()
    email = serializers.CharField(required=False)
    accountType = serializers.CharField(help_text="User or Service Account.")


class CandidateGroup(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()


class Candidates(serializers.Serializer):
    """Who can be given a role in a project."""

    users = CandidateUser(many=True)
    groups = CandidateGroup(many=True)


class AdminCount(serializers.Serializer):
    """How many may do everything."""

    password = serializers.IntegerField(help_text="People who log in with a password.")
    noPassword = serializers.IntegerField(help_text="People who log in by link only.")
    service = serializers.IntegerField(help_text="Service accounts.")


def _candidate(user: User) -> dict[str, Any]:
    """Without the members that are empty."""
    document = {
        "id": user.pk,
        "name": user.name,
        "username": user.username,
        "email": user.email,
        "accountType": "Service Account" if user.is_service else "User",
    }
    return {key: value for key, value in document.items() if value}


class CandidatesView(APIView):
    @extend_schema(
        operation_id="getBaseUsersAndGroups", tags=TAGS, responses={200: Candidates} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """Accounts and groups, for whoever may give access to a project."""
        request.user.check_anywhere(GIVERS)
        groups = Group.objects.order_by("id").values("id", "name", "description")
        users = [_candidate(user) for user in User.objects.order_by("id")]
        return Response({"users": users, "groups": list(groups)})


class AdminCountView(APIView):
    @extend_schema(operation_id="getAdminCount", tags=TAGS, responses={200: AdminCount} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """How many active accounts hold the Admin role, themselves or through a group."""
        request.user.check(Permission.ADMIN)
        people = list(admins().distinct())
        with_password = sum(person.has_usable_password() for person in people)
        service = User.objects.filter(is_service=True, is_active=True, root_role=BuiltIn.ADMIN.value)
        return Response(
            {
                "password": with_password,
                "noPassword": len(people) - with_password,
                "service": service.count(),
            }
        )


urlpatterns = [
    path("user-admin/access", CandidatesView.as_view()),
    path("user-admin/admin-count", AdminCountView.as_view()),
]

"""/api/admin/user-admin: the people."""

from django.conf import settings
from django.db.models import Q
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import ValidationError
from flagadmin.http.openapi import refusals
from flagadmin.http.path_ids import path_id
from groups.authentication import ApiRequest
from groups.login.links import INVITE_LIFETIME, create_login_link
from groups.login.passwords import change_password, problems_of_password
from groups.models import User
from groups.people import actions
from groups.people.access_candidates_api import GIVERS
from groups.people.actions import NewAccount
from groups.people.serializers import (
    AccountRecord,
    CreatedPersonRecord,
    PasswordBody,
    PeopleList,
    PersonBody,
    PersonUpdateBody,
    account_record,
    role_record,
)
from groups.permissions import Permission
from groups.roles.root_roles import root_roles

TAGS = ["People"]
SEARCH_LIMIT = 100


class PeopleView(APIView):
    @extend_schema(operation_id="getUsers", tags=TAGS, responses={200: PeopleList} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """All people, and the root roles there are."""
        people = actions.accounts(request.user, is_service=False)
        roles = [role_record(role) for role in root_roles()]
        users = [account_record(user) | {"inviteLink": ""} for user in people]
        return Response({"users": users, "rootRoles": roles})

    @extend_schema(
        operation_id="createUser",
        tags=TAGS,
        request=PersonBody,
        responses={201: CreatedPersonRecord} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Add a person. Without a password the answer has a link that works once."""
        request.user.check(Permission.ADMIN)
        body = PersonBody(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        new = NewAccount(
            username=data.get("username") or data.get("email") or "",
            name=data.get("name") or "",
            email=data.get("email"),
            root_role=data.get("rootRole"),
            password=data.get("password"),
        )
        user = actions.create_account(new, caller=request.user)
        record = account_record(user) | {"emailSent": False}
        if new.password is None:
            link = create_login_link(user, "/account/", lifetime=INVITE_LIFETIME)
            record["inviteLink"] = (
                settings.PUBLIC_URL + link if settings.PUBLIC_URL else request.build_absolute_uri(link)
            )
        return Response(record, status=201)


class PersonView(APIView):
    @extend_schema(
        operation_id="getUser", tags=TAGS, responses={200: AccountRecord} | refusals(400, 403, 404)
    )
    def get(self, request: ApiRequest, user_id: str) -> Response:
        """One person."""
        request.user.check(Permission.ADMIN)
        user = actions.access_account(request.user, path_id(user_id), is_service=False)
        return Response(account_record(user))

    @extend_schema(
        operation_id="updateUser",
        tags=TAGS,
        request=PersonUpdateBody,
        responses={200: AccountRecord} | refusals(400, 403, 404, 409, 415),
    )
    def put(self, request: ApiRequest, user_id: str) -> Response:
        """Change a person; what is not named stays. The last admin keeps the Admin role."""
        request.user.check(Permission.ADMIN)
        body = PersonUpdateBody(data=request.data)
        body.is_valid(raise_exception=True)
        user = actions.update_account(path_id(user_id), body.changes(), is_service=False, caller=request.user)
        return Response(account_record(user))

    @extend_schema(operation_id="deleteUser", tags=TAGS, responses={200: None} | refusals(400, 403, 404))
    def delete(self, request: ApiRequest, user_id: str) -> Response:
        """Delete a person with their keys, roles and memberships."""
        request.user.check(Permission.ADMIN)
        actions.delete_account(path_id(user_id), is_service=False, caller=request.user)
        return Response()


class PersonPasswordView(APIView):
    @extend_schema(
        operation_id="changeUserPassword",
        tags=TAGS,
        request=PasswordBody,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest, user_id: str) -> Response:
        """Set a person's password. It logs them out everywhere."""
        user = actions.access_account(request.user, path_id(user_id), is_service=False)
        body = PasswordBody(data=request.data)
        body.is_valid(raise_exception=True)
        change_password(user, body.validated_data["password"], caller=request.user)
        return Response()


class ValidatePasswordView(APIView):
    @extend_schema(
        operation_id="validateUserPassword",
        tags=TAGS,
        request=PasswordBody,
        responses={200: None} | refusals(400, 403, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether a password keeps the rules; all that is wrong with it at once."""
        body = PasswordBody(data=request.data)
        body.is_valid(raise_exception=True)
        if problems := problems_of_password(body.validated_data["password"], User()):
            raise ValidationError.of(problems)
        return Response()


class SearchPeopleView(APIView):
    @extend_schema(
        operation_id="searchUsers",
        tags=TAGS,
        parameters=[OpenApiParameter("q", str, description="Part of a name, user name or email address.")],
        responses={200: AccountRecord(many=True)} | refusals(403),
    )
    def get(self, request: ApiRequest) -> Response:
        """People by part of their name, for whoever may give access to a project. At most 100."""
        request.user.check_anywhere(GIVERS)
        part = request.query_params.get("q", "").strip()
        matches = Q(username__icontains=part) | Q(name__icontains=part) | Q(email__icontains=part)
        if not part:
            return Response([])
        people = User.objects.filter(matches, is_service=False).order_by("username")
        return Response([account_record(user) for user in people[:SEARCH_LIMIT]])


urlpatterns = [
    path("user-admin", PeopleView.as_view()),
    path("user-admin/search", SearchPeopleView.as_view()),
    path("user-admin/validate-password", ValidatePasswordView.as_view()),
    path("user-admin/<str:user_id>", PersonView.as_view()),
    path("user-admin/<str:user_id>/change-password", PersonPasswordView.as_view()),
]

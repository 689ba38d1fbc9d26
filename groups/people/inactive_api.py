"""/api/admin/user-admin/inactive: people who have not been seen for half a year."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Body, ListOf
from flagadmin.core.http.timestamps import iso
from groups.authentication import ApiRequest
from groups.people.dormant import delete_inactive_people, read_inactive_people
from groups.people.serializers import NamedAccount
from groups.permissions import Permission
from groups.viewsets import ViewSet


class InactivePersonRecord(NamedAccount):
    seenAt = serializers.DateTimeField(allow_null=True, help_text="The last login.")
    createdAt = serializers.DateTimeField()
    patSeenAt = serializers.DateTimeField(allow_null=True, help_text="The last use of a personal token.")


class InactivePeople(serializers.Serializer):
    version = serializers.IntegerField()
    inactiveUsers = InactivePersonRecord(many=True)


class IdsBody(Body):
    ids = ListOf(child=serializers.IntegerField(min_value=1, max_value=2**63 - 1))


class InactivePeopleViewSet(ViewSet):
    tags = ("People",)
    permissions = {"list": Permission.ADMIN, "delete_listed": Permission.ADMIN}

    @extend_schema(operation_id="getInactiveUsers", responses=InactivePeople)
    def list(self, request: ApiRequest) -> Response:
        """List the users who have neither logged in nor used a personal token for 180 days."""
        records = [
            {
                "id": user.pk,
                "name": user.name,
                "username": user.username,
                "email": user.email,
                "seenAt": iso(user.seen_at),
                "createdAt": iso(user.created_at),
                "patSeenAt": iso(user.token_seen_at),  # type: ignore[attr-defined]
            }
            for user in read_inactive_people(self.caller)
        ]
        return Response({"version": 1, "inactiveUsers": records})

    @extend_schema(operation_id="deleteInactiveUsers", request=IdsBody, responses={200: None})
    @action(methods=["post"], detail=False, url_path="delete")
    def delete_listed(self, request: ApiRequest) -> Response:
        """Delete these inactive users, all or none."""
        delete_inactive_people(self.validated(IdsBody)["ids"], caller=self.caller)
        return Response()

"""/api/admin/relays: the relays that serve SDKs elsewhere, with their last reports."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.models import Relay
from projects.relays.reports import State, make_relay_document


class RelayRecord(serializers.Serializer):
    id = serializers.CharField(help_text="Of the relay's directory: it stays when the relay restarts.")
    region = serializers.CharField(help_text="The relay's `--region`.")
    state = serializers.CharField(help_text=f"One of {', '.join(State)}.")
    description = serializers.CharField(help_text="The state in words.")
    version = serializers.CharField()
    startedAt = serializers.DateTimeField()
    lastReportAt = serializers.DateTimeField()
    flagsReadAt = serializers.DateTimeField(help_text="When its oldest flags were last known to be right.")
    tokens = serializers.IntegerField(help_text="Tokens that its clients have brought.")
    clients = serializers.IntegerField(help_text="Instances that reported to it in its last interval.")
    streams = serializers.IntegerField(help_text="Open streams.")
    batchesWaiting = serializers.IntegerField(
        help_text="Batches of usage reports that it has not got rid of."
    )


class RelayList(serializers.Serializer):
    relays = RelayRecord(many=True)


class RelayViewSet(ViewSet):
    tags = ("Installation",)
    permissions = {"list": Permission.ADMIN}

    @extend_schema(operation_id="getRelays", responses=RelayList)
    def list(self, request: ApiRequest) -> Response:
        """List the relays that have reported in the last 30 days, by region.

        Each reports once in its interval; one that has missed three is silent.
        """
        now = timezone.now()
        return Response({"relays": [make_relay_document(relay, now) for relay in Relay.objects.all()]})

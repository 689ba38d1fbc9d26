"""/api/admin/relays: the relays that serve SDKs elsewhere, with their last reports."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.http.fields import Time
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.models import Relay
from projects.relays.reports import State, describe_state, find_state


class RelayRecord(serializers.Serializer):
    id = serializers.CharField(
        source="identifier", help_text="Of the relay's directory: it stays when the relay restarts."
    )
    region = serializers.CharField(help_text="The relay's `--region`.")
    state = serializers.SerializerMethodField(help_text=f"One of {', '.join(State)}.")
    description = serializers.SerializerMethodField(help_text="The state in words.")
    version = serializers.CharField()
    startedAt = Time(source="started_at")
    lastReportAt = Time(source="heard_at")
    flagsReadAt = Time(source="flags_read_at", help_text="When its oldest flags were last known to be right.")
    tokens = serializers.IntegerField(help_text="Tokens that its clients have brought.")
    clients = serializers.IntegerField(help_text="Instances that reported to it in its last interval.")
    streams = serializers.IntegerField(help_text="Open streams.")
    batchesWaiting = serializers.IntegerField(
        source="batches_waiting", help_text="Batches of usage reports that it has not got rid of."
    )

    def get_state(self, relay: Relay) -> str:
        return find_state(relay, self.context["now"])

    def get_description(self, relay: Relay) -> str:
        return describe_state(relay, self.context["now"])


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
        relays = RelayRecord(Relay.objects.all(), many=True, context={"now": timezone.now()})
        return Response({"relays": relays.data})

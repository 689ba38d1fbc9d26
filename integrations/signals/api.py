"""/api/signals/NAME, where other systems send signals, and /api/admin/signals: their sources and rules."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.errors import AuthenticationRequired
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, MapOf, Time, path_id
from flagadmin.core.http.request_bodies import FreedBodies
from groups.authentication import ApiRequest, read_credential
from groups.viewsets import Permission, ViewSet
from integrations.models import SignalRule, SignalSource
from integrations.signals import actions
from integrations.signals.actions import (
    READERS,
    find_rule,
    find_visible_source,
    list_sources,
    make_rule_document,
    make_source_document,
    select_visible_results,
)
from integrations.signals.receive import authenticate_source, find_holder, receive_signal, try_rule


class SourceBody(Body):
    name = serializers.CharField(max_length=100, help_text="Part of the URL: `/api/signals/NAME`.")
    kind = serializers.ChoiceField(SignalSource.Kind.values)


class SignalRuleBody(Body):
    name = serializers.CharField(max_length=100)
    match = MapOf(
        child=serializers.CharField(max_length=500),
        help_text="Values by path, such as `labels.severity`. `*` is any. A signal must have all of them.",
    )
    project = serializers.CharField(max_length=MAX_NAME_LENGTH)
    flag = serializers.CharField(max_length=MAX_NAME_LENGTH)
    environment = serializers.CharField(max_length=MAX_NAME_LENGTH)
    then = serializers.ChoiceField(SignalRule.Action.values)
    enabled = serializers.BooleanField(required=False, default=False)


class SignalBody(Body):
    """An object: Alertmanager's own, or any other. Its members are not limited."""

    alerts = serializers.JSONField(
        required=False, help_text="Of Alertmanager: `status`, `labels`, `annotations`."
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        super().to_internal_value(data)
        return dict(data)


class SuspensionRecord(serializers.Serializer):
    since = serializers.DateTimeField()
    by = serializers.CharField(help_text="The one who replaced the token of the source.")


class SignalRuleRecord(SignalRuleBody):
    id = serializers.IntegerField()
    suspended = SuspensionRecord(
        allow_null=True,
        help_text="Since when the rule does nothing, until its author or an admin saves it again.",
    )


class SourceRecord(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    createdAt = serializers.DateTimeField()
    rules = SignalRuleRecord(many=True)


class NewSourceRecord(SourceRecord):
    token = serializers.CharField(help_text="`signal_…`. It is not shown again.")


class SourceList(serializers.Serializer):
    sources = SourceRecord(many=True)


class SignalTokenRecord(serializers.Serializer):
    token = serializers.CharField(help_text="It is not shown again. The one before is refused from now on.")
    suspendedRules = serializers.ListField(
        child=serializers.CharField(),
        help_text="The names of rules that do nothing until they are saved again.",
    )


class TriedItem(serializers.Serializer):
    item = serializers.IntegerField(help_text="Which alert that is firing, from 1.")
    meets = serializers.BooleanField(help_text="Whether the rule would act.")
    summary = serializers.CharField()


class TrialRecord(serializers.Serializer):
    items = TriedItem(many=True)


class ResultRecord(serializers.Serializer):
    rule = serializers.CharField()
    project = serializers.CharField(required=False, help_text="Missing in results from before 1.4.")
    flag = serializers.CharField()
    environment = serializers.CharField()
    result = serializers.CharField(
        help_text="turnedOff, wasOff, paused, noRunningPlan, noted, repeated or refused."
    )
    why = serializers.CharField(required=False)


class ReceivedRecord(serializers.Serializer):
    results = ResultRecord(many=True)


class SignalRecord(serializers.Serializer):
    id = serializers.IntegerField()
    receivedAt = Time(source="received_at")
    body = serializers.JSONField()
    results = ResultRecord(many=True)


class SignalList(serializers.Serializer):
    signals = SignalRecord(many=True)


MAX_LISTED = 100


class SignalView(FreedBodies, APIView):
    """Accepts only the token of the source, before the body is read."""

    tags = ("Signals",)
    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: str, **kwargs: str) -> None:
        super().initial(request, *args, **kwargs)
        credential = read_credential(request)
        if not credential:
            raise AuthenticationRequired
        self.source = authenticate_source(kwargs["source"], credential)

    @extend_schema(operation_id="sendSignal", request=SignalBody, responses={202: ReceivedRecord})
    def post(self, request: Request, source: str) -> Response:
        """Send a signal: any JSON object, or Alertmanager's own. Needs the token of the source.

        The answer lists the effects of the matching rules. Signals with the same `id`, or of the same alert, act once.
        Rules of private projects that the creator of the token cannot see are left out of the answer.
        """
        body = SignalBody(data=request.data)
        body.is_valid(raise_exception=True)
        signal = receive_signal(self.source, body.validated_data)
        select_visible_results(self.source, [signal], find_holder(self.source))
        return Response({"results": signal.results}, status=202)


class SignalSourceViewSet(ETagMixin, ViewSet):
    tags = ("Signals",)
    lookup_url_kwarg = "source_id"
    permissions = {
        "list": READERS,
        "retrieve": READERS,
        "received": Permission.UPDATE_ADDON,
        "create": Permission.CREATE_ADDON,
        "destroy": Permission.DELETE_ADDON,
        "token": Permission.UPDATE_ADDON,
    }
    source: SignalSource

    def authorize(self, source_id: str | None = None) -> None:
        if source_id is not None:
            self.source = find_visible_source(self.caller, path_id(source_id, "Source"))
        self.check_permission()

    def get_current_document(self) -> Document:
        return make_source_document(self.source, self.caller)

    @extend_schema(operation_id="getSignalSources", responses={200: SourceList})
    def list(self, request: ApiRequest) -> Response:
        """List the sources of signals with their rules."""
        sources = list_sources().prefetch_related("rules")
        return Response({"sources": [make_source_document(source, self.caller) for source in sources]})

    @extend_schema(operation_id="createSignalSource", request=SourceBody, responses={201: NewSourceRecord})
    def create(self, request: ApiRequest) -> Response:
        """Create a source of signals. Only this answer has its token."""
        body = self.validated(SourceBody)
        source, token = actions.create_source(body["name"], body["kind"], caller=self.caller)
        return Response(make_source_document(source, self.caller) | {"token": token}, status=201)

    @extend_schema(operation_id="getSignalSource", responses={200: SourceRecord})
    def retrieve(self, request: ApiRequest, source_id: str) -> Response:
        """Get a source of signals with its rules."""
        return Response(make_source_document(self.source, self.caller))

    @extend_schema(operation_id="deleteSignalSource", responses={200: None})
    def destroy(self, request: ApiRequest, source_id: str) -> Response:
        """Delete a source of signals, its rules, and its received signals."""
        actions.delete_source(self.source.pk, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(operation_id="replaceSignalToken", request=None, responses={201: SignalTokenRecord})
    @action(detail=True, methods=["post"])
    def token(self, request: ApiRequest, source_id: str) -> Response:
        """Replace the token of a source. The one before is refused at once.

        Rules that others have saved are suspended, unless an admin replaces the token: they do nothing until they are
        saved again.
        """
        token, suspended = actions.replace_token(self.source.pk, caller=self.caller)
        names = [rule.name for rule in suspended]
        return Response({"token": token, "suspendedRules": names}, status=201)

    @extend_schema(operation_id="getReceivedSignals", responses={200: SignalList})
    @action(detail=True)
    def received(self, request: ApiRequest, source_id: str) -> Response:
        """List the last 100 signals of a source, newest first, and what rules did. They are kept for 30 days."""
        signals = select_visible_results(self.source, self.source.signals.all()[:MAX_LISTED], self.caller)
        return Response({"signals": SignalRecord(signals, many=True).data})


class SignalRuleViewSet(ETagMixin, ViewSet):
    tags = ("Signals",)
    lookup_url_kwarg = "rule_id"
    permissions = {
        "retrieve": READERS,
        "create": Permission.UPDATE_ADDON,
        "update": Permission.UPDATE_ADDON,
        "destroy": Permission.UPDATE_ADDON,
        "trial": Permission.UPDATE_ADDON,
    }
    source: SignalSource
    rule: SignalRule

    def authorize(self, source_id: str, rule_id: str | None = None) -> None:
        self.source = find_visible_source(self.caller, path_id(source_id, "Source"))
        if rule_id is not None:
            self.rule = find_rule(self.source, path_id(rule_id, "Rule"), self.caller)
        self.check_permission()

    def get_current_document(self) -> Document:
        return make_rule_document(self.rule)

    @extend_schema(operation_id="createSignalRule", request=SignalRuleBody, responses={201: SignalRuleRecord})
    def create(self, request: ApiRequest, source_id: str) -> Response:
        """Create a rule: the effect on a flag of a signal with these values, with your rights."""
        rule = actions.save_rule(self.source.pk, self.validated(SignalRuleBody), caller=self.caller)
        return Response(make_rule_document(rule), status=201)

    @extend_schema(operation_id="getSignalRule", responses={200: SignalRuleRecord})
    def retrieve(self, request: ApiRequest, source_id: str, rule_id: str) -> Response:
        """Get a rule."""
        return Response(make_rule_document(self.rule))

    @extend_schema(operation_id="updateSignalRule", request=SignalRuleBody, responses={200: SignalRuleRecord})
    def update(self, request: ApiRequest, source_id: str, rule_id: str) -> Response:
        """Replace a rule. From now on it acts with your rights."""
        values = self.validated(SignalRuleBody)
        rule = actions.save_rule(
            self.source.pk, values, rule_id=self.rule.pk, expected=self.expected, caller=self.caller
        )
        return Response(make_rule_document(rule))

    @extend_schema(operation_id="deleteSignalRule", responses={200: None})
    def destroy(self, request: ApiRequest, source_id: str, rule_id: str) -> Response:
        """Delete a rule."""
        actions.delete_rule(self.source.pk, self.rule.pk, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(operation_id="trySignalRule", request=SignalBody, responses={200: TrialRecord})
    @action(detail=True, methods=["post"], url_path="try")
    def trial(self, request: ApiRequest, source_id: str, rule_id: str) -> Response:
        """Say whether an example of a signal meets a rule. Nothing is changed."""
        return Response({"items": try_rule(self.rule, self.validated(SignalBody))})

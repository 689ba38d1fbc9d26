"""/api/signals/NAME, where other systems send signals, and /api/admin/signals: their sources and rules."""

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.errors import AuthenticationRequired
from flagadmin.core.http.ids import path_id
from flagadmin.core.http.request_bodies import FreedBodies
from groups.authentication import ApiRequest, read_credential
from groups.permissions import Permission
from groups.viewsets import ViewSet
from integrations.models import SignalRule, SignalSource
from integrations.signals import actions
from integrations.signals.documents import (
    make_rule_document,
    make_signal_document,
    make_source_document,
)
from integrations.signals.queries import find_rule, find_source, list_sources
from integrations.signals.receive import authenticate_source, receive_signal, try_rule
from integrations.signals.serializers import (
    NewSourceRecord,
    ReceivedRecord,
    SignalBody,
    SignalList,
    SignalRuleBody,
    SignalRuleRecord,
    SignalTokenRecord,
    SourceBody,
    SourceList,
    SourceRecord,
    TrialRecord,
)

MAX_LISTED = 100
ANY_OF_INTEGRATIONS = (Permission.CREATE_ADDON, Permission.UPDATE_ADDON, Permission.DELETE_ADDON)


class SignalView(FreedBodies, APIView):
    """Accepts the token of the source only, before the body is read."""

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
        """Send a signal: any JSON object, or what Alertmanager sends. Needs the token of the source.

        The answer says what the rules did that it meets. What has the same `id`, or is the same alert, acts once.
        """
        body = SignalBody(data=request.data)
        body.is_valid(raise_exception=True)
        signal = receive_signal(self.source, body.validated_data)
        return Response({"results": signal.results}, status=202)


class SignalSourceViewSet(ETagMixin, ViewSet):
    tags = ("Signals",)
    lookup_url_kwarg = "source_id"
    permissions = {
        "list": ANY_OF_INTEGRATIONS,
        "retrieve": ANY_OF_INTEGRATIONS,
        "received": Permission.UPDATE_ADDON,
        "create": Permission.CREATE_ADDON,
        "destroy": Permission.DELETE_ADDON,
        "token": Permission.UPDATE_ADDON,
    }
    source: SignalSource

    def authorize(self, source_id: str | None = None) -> None:
        if source_id is not None:
            self.source = find_source(path_id(source_id, "Source"))
        self.check_permission()

    def get_current_document(self) -> Document:
        return make_source_document(self.source)

    @extend_schema(operation_id="getSignalSources", responses={200: SourceList})
    def list(self, request: ApiRequest) -> Response:
        """List the sources of signals with their rules."""
        sources = list_sources().prefetch_related("rules")
        return Response({"sources": [make_source_document(source) for source in sources]})

    @extend_schema(operation_id="createSignalSource", request=SourceBody, responses={201: NewSourceRecord})
    def create(self, request: ApiRequest) -> Response:
        """Create a source of signals. Only this answer has its token."""
        body = self.validated(SourceBody)
        source, token = actions.create_source(body["name"], body["kind"], caller=self.caller)
        return Response(make_source_document(source) | {"token": token}, status=201)

    @extend_schema(operation_id="getSignalSource", responses={200: SourceRecord})
    def retrieve(self, request: ApiRequest, source_id: str) -> Response:
        """Get a source of signals with its rules."""
        return Response(make_source_document(self.source))

    @extend_schema(operation_id="deleteSignalSource", responses={200: None})
    def destroy(self, request: ApiRequest, source_id: str) -> Response:
        """Delete a source of signals, its rules, and the list of what it sent."""
        actions.delete_source(self.source.pk, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(operation_id="replaceSignalToken", request=None, responses={201: SignalTokenRecord})
    @action(detail=True, methods=["post"])
    def token(self, request: ApiRequest, source_id: str) -> Response:
        """Replace the token of a source. The one before is refused at once."""
        return Response({"token": actions.replace_token(self.source.pk, caller=self.caller)}, status=201)

    @extend_schema(operation_id="getReceivedSignals", responses={200: SignalList})
    @action(detail=True)
    def received(self, request: ApiRequest, source_id: str) -> Response:
        """List the last 100 signals of a source, newest first, and what rules did. They are kept for 30 days."""
        signals = self.source.signals.all()[:MAX_LISTED]
        return Response({"signals": [make_signal_document(signal) for signal in signals]})


class SignalRuleViewSet(ETagMixin, ViewSet):
    tags = ("Signals",)
    lookup_url_kwarg = "rule_id"
    permissions = {
        "retrieve": ANY_OF_INTEGRATIONS,
        "create": Permission.UPDATE_ADDON,
        "update": Permission.UPDATE_ADDON,
        "destroy": Permission.UPDATE_ADDON,
        "trial": Permission.UPDATE_ADDON,
    }
    source: SignalSource
    rule: SignalRule

    def authorize(self, source_id: str, rule_id: str | None = None) -> None:
        self.source = find_source(path_id(source_id, "Source"))
        if rule_id is not None:
            self.rule = find_rule(self.source, path_id(rule_id, "Rule"))
        self.check_permission()

    def get_current_document(self) -> Document:
        return make_rule_document(self.rule)

    @extend_schema(operation_id="createSignalRule", request=SignalRuleBody, responses={201: SignalRuleRecord})
    def create(self, request: ApiRequest, source_id: str) -> Response:
        """Create a rule: what a signal with these values does to a flag, with your rights."""
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

"""/api/admin/stale-flags: removable flags, each with the proof."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.http.fields import Texts
from groups.viewsets import ApiRequest, ViewSet
from playground.stale.queries import find_candidates, make_proof_document, prove_flags
from projects.access import check_project
from projects.flags.lists.conditions import list_reasons
from projects.models import Flag

MAX_FLAGS = 50

DESCRIPTION = """\
Flags that are past their time, the oldest first: marked as stale or completed, older than their type lives, or on for
everyone in production for 30 days. Each comes with the proof:

* `everybodyGets`: what saved contexts, and generated ones that meet and miss each rule, get in each environment.
* `keep`: what the code is to keep, if everybody gets the same in production. `canLeaveTheCode`: there is such a thing,
  and no other flag depends on it. `task` says so to whoever removes it, and names other environments where it differs.
* `inCode`: the repositories that have it, as CI has reported them.
* `canBeArchived`: no application has asked for it for seven days, no such repository has it, and no other flag depends
  on it.
"""


class StaleQuery(serializers.Serializer[Any]):
    project = serializers.CharField(required=False, help_text="Only flags of this project.")
    limit = serializers.IntegerField(min_value=1, max_value=MAX_FLAGS, default=MAX_FLAGS)
    offset = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)


class Kept(serializers.Serializer[Any]):
    isEnabled = serializers.BooleanField()
    variant = serializers.CharField(allow_null=True)


class InCode(serializers.Serializer[Any]):
    repository = serializers.CharField()
    count = serializers.IntegerField()


class StaleFlagProof(serializers.Serializer[Any]):
    name = serializers.CharField()
    project = serializers.CharField()
    why = Texts()
    ageDays = serializers.IntegerField()
    lifetimeDays = serializers.IntegerField(allow_null=True, help_text="Of its type.")
    unchangedDays = serializers.IntegerField()
    everybodyGets = serializers.DictField(child=serializers.CharField())
    keep = Kept(allow_null=True)
    lastEvaluated = serializers.DictField(child=serializers.DateTimeField())
    dependents = Texts()
    inCode = InCode(many=True)
    isCompleted = serializers.BooleanField()
    canLeaveTheCode = serializers.BooleanField()
    canBeArchived = serializers.BooleanField()
    task = serializers.CharField(help_text="A ticket, or the prompt of an agent; empty while it has to stay.")


class StaleFlagProofs(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    flags = StaleFlagProof(many=True)


class StaleViewSet(ViewSet):
    tags = ("Features",)

    @extend_schema(
        operation_id="getStaleFlags",
        summary="List flags that can go, with the proof",
        description=DESCRIPTION,
        parameters=[StaleQuery],
        responses={200: StaleFlagProofs},
    )
    def list(self, request: ApiRequest) -> Response:
        query = StaleQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        values, now = query.validated_data, timezone.now()
        flags = Flag.objects.readable_by(self.caller)
        if "project" in values:
            flags = flags.filter(project=check_project(self.caller, values["project"]))
        reasons = list_reasons(now)
        candidates = find_candidates(flags, reasons)
        chosen = list(candidates[values["offset"] : values["offset"] + values["limit"]])
        proofs = prove_flags(chosen, reasons, now=now, caller=self.caller)
        return Response(
            {"total": candidates.count(), "flags": [make_proof_document(proof) for proof in proofs]}
        )

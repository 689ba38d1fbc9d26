"""Describes runs in the OpenAPI document, and their answers."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from flagadmin.core.lists.pages import SPREADSHEET
from playground.comparison.request import CountedAnswer
from playground.models import UserRun

RUN_EXAMPLE = {
    "id": "5d0c3a0e-8a4b-4a52-9e0f-1f0e4f6f7c11",
    "kind": "users",
    "state": "done",
    "environment": "production",
    "flag": "dark-theme",
    "users": 2,
    "usersDone": 2,
    "createdAt": "2026-11-22T09:00:00.000Z",
    "finishedAt": "2026-11-22T09:00:00.120Z",
    "problem": None,
}
COUNTS: dict[str, str] = {
    UserRun.Kind.USERS: "flags",
    UserRun.Kind.ASSIGNMENTS: "assigned",
    UserRun.Kind.INCIDENT: "found",
}
"""The member of a kind's counts."""
RESULT_PARAMETERS = [
    OpenApiParameter(
        SPREADSHEET,
        bool,
        description="Put an apostrophe before text that spreadsheets would run as a formula, such as an id that begins "
        "with `+`. Without it, ids are as they were sent.",
    )
]


class UserRunRecord(s.Serializer[Any]):
    id = s.UUIDField()
    kind = s.CharField(help_text="`users`, `assignments` or `incident`.")
    state = s.ChoiceField(UserRun.State.choices)
    environment = s.CharField()
    flag = s.CharField(allow_null=True)
    users = s.IntegerField()
    usersDone = s.IntegerField()
    createdAt = s.DateTimeField()
    finishedAt = s.DateTimeField(allow_null=True)
    problem = s.CharField(allow_null=True, help_text="Why the run failed.")


class CountedFlag(s.Serializer[Any]):
    name = s.CharField()
    results = CountedAnswer(many=True)


class AssignedFlag(s.Serializer[Any]):
    name = s.CharField()
    results = s.DictField(
        child=s.IntegerField(), help_text="Rows by result: on, off, unknown, random, in between."
    )
    lacks = s.DictField(
        child=s.IntegerField(), help_text="Unknown rows by the fields on which they may depend."
    )


class BothGroups(s.Serializer[Any]):
    affected = s.IntegerField()
    others = s.IntegerField()


class ChangedForUsers(s.Serializer[Any]):
    name = s.CharField()
    affected = s.DictField(child=s.IntegerField(), help_text="Users by how their result changed.")
    others = s.DictField(child=s.IntegerField())


class FoundNumbers(s.Serializer[Any]):
    noticed = BothGroups()
    known = BothGroups()
    oddsRatio = s.FloatField()
    p = s.FloatField()
    pAdjusted = s.FloatField()
    isLikely = s.BooleanField()
    sentence = s.CharField()


class FoundChange(FoundNumbers):
    change = s.CharField(
        allow_null=True, help_text="The id of an audit event; null for a change made outside flagadmin."
    )
    at = s.DateTimeField()
    flags = ChangedForUsers(many=True)
    moreFlags = s.IntegerField()


class FoundInCommon(FoundNumbers):
    flag = s.CharField()
    result = s.CharField()
    variant = s.CharField(allow_null=True)


class IncidentFound(s.Serializer[Any]):
    environment = s.CharField()
    to = s.DateTimeField()
    affected = s.IntegerField()
    others = s.IntegerField()
    othersAre = s.ChoiceField(("given", "own", "generated"))
    changes = FoundChange(many=True)
    common = FoundInCommon(many=True)

    def get_fields(self) -> dict[str, Any]:
        return super().get_fields() | {"from": s.DateTimeField()}


class UserRunResult(UserRunRecord):
    flags = CountedFlag(many=True, help_text="Of a run of users. Empty until it is done.", required=False)
    found = IncidentFound(help_text="Of an incident. Empty until it is done.", required=False)
    assigned = AssignedFlag(many=True, help_text="Of a run of assignments.", required=False)


class UserRunList(s.Serializer[Any]):
    runs = UserRunRecord(many=True)


def run_document(run: UserRun) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "kind": run.kind,
        "state": run.state,
        "environment": run.environment,
        "flag": run.flag or None,
        "users": run.rows,
        "usersDone": run.rows_done,
        "createdAt": run.created_at,
        "finishedAt": run.finished_at,
        "problem": run.problem or None,
    }


def make_result_document(run: UserRun) -> dict[str, Any]:
    return run_document(run) | {COUNTS[run.kind]: run.counts}

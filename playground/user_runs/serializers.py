"""Describes runs of users in the OpenAPI document, and reads their query string."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers as s

from flagadmin.core.http.fields import Body, Texts
from flagadmin.core.lists.pages import SPREADSHEET
from playground.comparison.openapi import CountedAnswer
from playground.models import UserRun
from playground.user_runs.space import SHARE

BODY_MB = settings.IMPORT_BODY_LIMIT // 1_000_000
RESULTS_MB = settings.USER_RESULTS_BYTES // 1_000_000
RESULT_MB = RESULTS_MB // SHARE

DESCRIPTION = f"""\
Evaluates flags for every user of a CSV file, up to 100,000, beside the requests of others.

The columns are context fields: `userId`, `sessionId`, `remoteAddress`, `appName`, `environment`, `currentTime`, a
context field that exists, or any other as `properties.NAME`. Commas, semicolons or tabs part them; an empty cell is a
field that is not given. The file has at most {BODY_MB:,} MB, and users times flags are at most 10,000,000. The
compressed result has at most {RESULT_MB:,} MB, all results together at most {RESULTS_MB:,} MB: a larger one is refused
from an estimate before the run begins (400), and so is one for which there is no space now (409).

The answer has the `id` under which the run's progress and result are found; a short file is evaluated at once.
`flags` counts what users get of each flag. The result is a CSV with a line for each user and flag: `row` (the header is
row 1), `userId` and `sessionId` if the file has them, `flag`, `result` (`On`, `Off`, `Can't tell`, `On for 30 % of
calls`), `variant` and `reason`.

Everybody may evaluate the flags of projects that they can read. A run is its caller's own; the last 5 are kept, for 7
days.
"""
FILE = {"type": "string", "maxLength": settings.IMPORT_BODY_LIMIT}
FILE_EXAMPLE = "userId,country,properties.plan\n42,NO,pro\n7,DE,\n"
RUN_EXAMPLE = {
    "id": "5d0c3a0e-8a4b-4a52-9e0f-1f0e4f6f7c11",
    "state": "done",
    "environment": "production",
    "flag": "dark-theme",
    "users": 2,
    "usersDone": 2,
    "createdAt": "2026-11-22T09:00:00.000Z",
    "finishedAt": "2026-11-22T09:00:00.120Z",
    "problem": None,
}
RESULT_EXAMPLE = RUN_EXAMPLE | {
    "flags": [
        {
            "name": "dark-theme",
            "results": [
                {"isEnabled": False, "variant": None, "contexts": 1.0},
                {"isEnabled": True, "variant": None, "contexts": 1.0},
            ],
        }
    ]
}


class UserRunQuery(Body):
    environment = s.CharField()
    project = Texts(
        required=False, help_text="Only flags of these projects; without it, of all you can read."
    )
    flag = s.CharField(required=False, help_text="Only this flag.")


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


class UserRunResult(UserRunRecord):
    flags = CountedFlag(many=True, help_text="Empty until the run is done.")


class UserRunList(s.Serializer[Any]):
    runs = UserRunRecord(many=True)


def run_document(run: UserRun) -> dict[str, Any]:
    return {
        "id": str(run.pk),
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
    return run_document(run) | {"flags": run.counts}

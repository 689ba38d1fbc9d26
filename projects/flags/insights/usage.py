"""Reads which applications use a flag and how often, to help users decide whether to archive it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.flags.insights.evaluations import find_last_evaluation
from projects.models import Flag

_USERS = """
SELECT u.flag_id, a.name, u.environment, u.last_used_at
  FROM projects_flagusage u JOIN projects_application a ON a.id = u.application_id
 WHERE u.flag_id = ANY(%s) ORDER BY u.flag_id, u.last_used_at DESC, a.name, u.environment
"""
_HOURS = """
SELECT h.environment, h.hour, sum(h.yes)::bigint, sum(h.no)::bigint
  FROM projects_usagehour h WHERE h.flag_id = %s AND h.hour > %s GROUP BY 1, 2 ORDER BY 2, 1
"""
_RAW = """
SELECT a.name, h.environment, h.hour, h.yes, h.no, h.variants
  FROM projects_usagehour h JOIN projects_application a ON a.id = h.application_id
 WHERE h.flag_id = %s AND h.hour > %s ORDER BY h.hour, h.environment, a.name
"""


@dataclass(frozen=True, slots=True)
class FlagUser:
    """An application that evaluated a flag in an environment, and the time of its last evaluation."""

    application: str
    environment: str
    last_used_at: datetime


def read_users(flag_ids: Iterable[int]) -> dict[int, list[FlagUser]]:
    """The users of each flag that has any, most recent first. One query."""
    users: dict[int, list[FlagUser]] = {}
    for flag_id, *user in fetch_rows(_USERS, [list(flag_ids)]):
        users.setdefault(flag_id, []).append(FlagUser(*user))
    return users


def read_usage(flag: Flag) -> Document:
    """Counts for the last hour, and all applications that ever used the flag."""
    users = read_users([flag.pk]).get(flag.pk, [])
    return {
        "version": 1,
        "maturity": "stable",
        "featureName": flag.name,
        "lastHourUsage": [
            {"environment": environment, "timestamp": iso(hour), "yes": yes, "no": no}
            for environment, hour, yes, no in fetch_rows(
                _HOURS, [flag.pk, timezone.now() - timedelta(hours=1)]
            )
        ],
        "seenApplications": sorted({user.application for user in users}),
        "usage": make_user_documents(users),
    }


def make_user_documents(users: Sequence[FlagUser]) -> list[Document]:
    return [
        {"appName": user.application, "environment": user.environment, "lastSeenAt": iso(user.last_used_at)}
        for user in users
    ]


def read_raw_usage(flag: Flag, *, hours_back: int) -> Document:
    """Counts by application, environment and hour."""
    since = timezone.now() - timedelta(hours=hours_back)
    return {
        "version": 1,
        "maturity": "stable",
        "featureName": flag.name,
        "data": [
            {
                "featureName": flag.name,
                "appName": application,
                "environment": environment,
                "timestamp": iso(hour),
                "yes": yes,
                "no": no,
                "variants": orjson.loads(variants),
            }
            for application, environment, hour, yes, no, variants in fetch_rows(_RAW, [flag.pk, since])
        ],
    }


def describe_usage(flag: int, environment: str) -> dict[str, Any]:
    """The flag's usage for the confirmation before saving: ``users``, the names of the applications that evaluate it
    there, and ``last_evaluation`` if none is known.
    """
    users = read_users([flag]).get(flag, [])
    names = sorted({user.application for user in users if user.environment == environment})
    return {"users": names, "last_evaluation": None if names else find_last_evaluation([flag], environment)}

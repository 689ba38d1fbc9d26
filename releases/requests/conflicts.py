"""Tells whether what a change was made from has changed since."""

import json
from typing import Any

from flagadmin.core.errors import NotFound
from releases.changes import KINDS, Target
from releases.models import Change, ChangeRequest


def target_of(request: ChangeRequest, change: Change) -> Target:
    return Target(request.project_id, request.environment_id, change.feature)


def sentence_of(request: ChangeRequest, change: Change) -> str:
    """What the change does: `Turn new-cart on`."""
    return KINDS[change.action].say(target_of(request, change), change.payload)


def find_conflict(request: ChangeRequest, change: Change) -> str:
    """Why the change no longer fits what is stored, "" if it does. A few queries."""
    try:
        now = KINDS[change.action].read(target_of(request, change), change.payload)
    except NotFound as error:
        return error.message
    if _plain(now) == change.made_from:
        return ""
    return "it has been changed since this was proposed."


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))

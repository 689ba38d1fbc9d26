"""The users of a person's last CSV file, if they allow it: Who changes prefers them to generated ones."""

import gzip
from io import BytesIO

import orjson
from django.utils import timezone

from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from playground.engine.context import Context, format_time
from playground.models import OwnUsers
from playground.user_runs.file import Sample, UserFile

MAX_OWN_USERS = 10_000
"""The maximum number of users taken from a file; from a longer one they are evenly spread."""


User = dict[str, str]


@transactional
def keep_own_users(body: bytes, rows: int, *, file_name: str, caller: Caller) -> None:
    """Keeps users of a checked file with this number of rows, in place of those kept before."""
    sample = Sample.of(UserFile(BytesIO(body)), rows, MAX_OWN_USERS)
    users = _spread([values for _, values in sample.users()], MAX_OWN_USERS)
    columns = {
        "file_name": file_name[:255] or "users.csv",
        "number": len(users),
        "body": gzip.compress(orjson.dumps(users), 1),
    }
    OwnUsers.objects.update_or_create(user=caller.user, defaults=columns)


@transactional
def forget_own_users(caller: Caller) -> None:
    OwnUsers.objects.filter(user=caller.user).delete()


def find_own_users(caller: Caller) -> OwnUsers | None:
    """Finds what the caller keeps, without the users. Tokens keep none."""
    if caller.user is None:
        return None
    return OwnUsers.objects.filter(user=caller.user).defer("body").first()


def make_own_contexts(own: OwnUsers, most: int) -> list[Context]:
    """Returns at most this many of the users, evenly spread."""
    users = orjson.loads(gzip.decompress(bytes(own.body)))
    now = format_time(timezone.now())
    return [Context.of_texts(texts, now=now) for texts in _spread(users, most)]


def _spread(users: list[User], most: int) -> list[User]:
    number = min(most, len(users))
    return [users[index * len(users) // number] for index in range(number)]

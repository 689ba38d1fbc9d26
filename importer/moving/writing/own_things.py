"""Moves what belongs to an account: personal tokens, with their secrets, and favorites."""

from collections.abc import Iterator
from datetime import datetime

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from groups.models import ApiToken, StartUpKey, User
from groups.tokens import PERSONAL, hash_secret, make_visible_prefix
from importer.moving.reading.hidden import FavoriteRow, Hidden, PersonalTokenRow
from importer.moving.reading.installation import Installation
from importer.moving.report import Kind, Line
from importer.moving.writing.keeping import SYSTEM
from importer.moving.writing.people import find_accounts
from projects.models import FavoriteFlag, FavoriteProject, Flag, Project


def move_own_things(installation: Installation, hidden: Hidden) -> Iterator[Line]:
    accounts = find_accounts(hidden)
    now = timezone.now()
    for row in hidden.personal_tokens:
        if (user := accounts.get(row.user_id)) is not None:
            yield from _move_personal_token(row, user, now)
    favorites = [row for row in hidden.favorites if row.user_id in accounts]
    moved = installation.flag_names | {""}
    yield from _move_favorites([row for row in favorites if row.feature in moved], accounts)


def _move_personal_token(row: PersonalTokenRow, user: User, now: datetime) -> Iterator[Line]:
    subject = f"personal token {row.description or 'without a name'} of {user}"
    digest = hash_secret(row.secret)
    if row.expires_at is not None and row.expires_at <= now:
        yield Line(Kind.CANNOT, subject, "has expired")
    elif not row.secret.startswith(PERSONAL):
        yield Line(Kind.CANNOT, subject, f"does not begin with {PERSONAL}")
    elif ApiToken.objects.filter(secret_hash=digest).exists():
        return
    elif StartUpKey.objects.filter(secret_hash=digest).exists():
        yield Line(Kind.CANNOT, subject, "was revoked here")
    else:
        name, prefix = _name_token(row, user), make_visible_prefix(row.secret)
        ApiToken.objects.create(
            kind=ApiToken.Kind.PERSONAL,
            name=name,
            user=user,
            secret_hash=digest,
            prefix=prefix,
            expires_at=row.expires_at,
            seen_at=row.seen_at,
            created_by=SYSTEM.name,
        )
        StartUpKey.objects.create(secret_hash=digest)
        after = {"name": name, "prefix": prefix, "user": user.username}
        record(Event(type=EventType.PAT_CREATED, subject=user.username, after=after), actor=SYSTEM)
        yield Line(Kind.CREATE, subject)


def _name_token(row: PersonalTokenRow, user: User) -> str:
    """Names of an account's tokens differ."""
    name = row.description[:200] or "moved"
    taken = user.tokens.filter(kind=ApiToken.Kind.PERSONAL, name=name).exists()
    return f"{name} ({make_visible_prefix(row.secret)})" if taken else name


def _move_favorites(rows: list[FavoriteRow], accounts: dict[int, User]) -> Iterator[Line]:
    flags = dict(Flag.objects.filter(name__in={row.feature for row in rows}).values_list("name", "id"))
    projects = set(Project.objects.filter(id__in={row.project for row in rows}).values_list("id", flat=True))
    known_flags = {*FavoriteFlag.objects.values_list("user_id", "flag_id")}
    known_projects = {*FavoriteProject.objects.values_list("user_id", "project_id")}
    of_flags = {(accounts[row.user_id].pk, flags[row.feature]) for row in rows if row.feature in flags}
    of_projects = {(accounts[row.user_id].pk, row.project) for row in rows if row.project in projects}
    FavoriteFlag.objects.bulk_create(
        FavoriteFlag(user_id=user, flag_id=flag) for user, flag in sorted(of_flags - known_flags)
    )
    FavoriteProject.objects.bulk_create(
        FavoriteProject(user_id=user, project_id=project)
        for user, project in sorted(of_projects - known_projects)
    )
    if new := len(of_flags - known_flags) + len(of_projects - known_projects):
        yield Line(Kind.CREATE, "favorites", f"{new:,}")

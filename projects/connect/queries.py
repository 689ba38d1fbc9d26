"""Reads the server's observations of an application that a user is connecting.

Remembers refused SDK requests for a while, so that people who connect an SDK see the reason.

A refusal is noted in memory, which costs no time; the worker's loop stores them once a second. Memory, rows and
statements are bounded, because anyone may send wrong tokens.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from flagadmin.core.db import outages
from flagadmin.core.db.standby import committed_locally
from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError, AuthenticationRequired, NoAccess
from flagadmin.core.http.middleware import get_client_address
from groups.access import Caller
from groups.models import ApiToken, User
from groups.permissions import BuiltIn, Permission
from groups.tokens import parse_scope
from projects.applications.documents import find_readable_applications
from projects.applications.sdk_versions import format_sdk
from projects.models import (
    ApplicationInstance,
    Environment,
    Flag,
    FlagEnvironment,
    Project,
    ProjectApplication,
    RefusedRequest,
    UsageHour,
)
from projects.tokens.access import find_permission, find_visible_tokens

MAX_TOKENS, MAX_APPLICATIONS, MAX_INSTANCES, MAX_PEOPLE = 10, 5, 50, 3
PATIENCE = timedelta(seconds=30)  # time until the page shows what to check, unprompted
WORDS = {
    "API token not found.": "this token is not known here",
    AuthenticationRequired.default_message: "no token was sent",
    "This API token has expired.": "this token has expired",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to connect: the place, the token (None: unknown), the flag and the start."""

    project: Project
    environment: str
    flag: str
    token: ApiToken | None
    since: datetime


@dataclass(frozen=True, slots=True)
class Connection:
    """The observed progress of an attempt.

    ``token_used_at``: the last use of its token since then. ``instance``: the SDK that registered since then, if its
    application may be read; with a used token, only if there is one application, because SDKs do not state their
    token. ``elsewhere``: one that registered in another environment instead. ``counts``: how often the flag was on
    and off in the last two hours, None without reports.
    """

    now: datetime
    is_late: bool
    token_used_at: datetime | None
    instance: ApplicationInstance | None
    elsewhere: ApplicationInstance | None
    counts: tuple[int, int] | None
    is_flag_on: bool
    refused: RefusedRequest | None

    @property
    def is_connected(self) -> bool:
        return self.token_used_at is not None or self.instance is not None

    @property
    def times(self) -> int:
        """The number of evaluations of the flag."""
        return sum(self.counts or ())

    @property
    def each_time(self) -> str:
        """``off each time``, ``on 3 times``"""
        on, off = self.counts or (0, 0)
        if on and off:
            return f"on {on:,} time{'s' if on > 1 else ''}"
        return "on each time" if on else "off each time"

    @property
    def sdk(self) -> str:
        return format_sdk(self.instance.sdk_version) if self.instance else ""

    @property
    def state(self) -> str:
        """A text that changes whenever the page has news."""
        parts = (
            self.is_late,
            self.token_used_at is not None,
            self.instance and self.instance.pk,
            self.elsewhere and self.elsewhere.pk,
            self.counts,
            self.is_flag_on,
            self.refused and (self.refused.pk, self.refused.seen_at.timestamp()),
        )
        return "-".join(str(part) for part in parts)


def find_connection(attempt: Attempt, *, caller: Caller, may_create: bool) -> Connection:
    """The progress. About six queries. Only callers who may create tokens see refused requests."""
    now = timezone.now()
    new = _new_instances(attempt, caller)
    used_at = _find_use(attempt)
    instance = _find_instance(attempt, new, used_at)
    is_connected = used_at is not None or instance is not None
    return Connection(
        now=now,
        is_late=now - attempt.since >= PATIENCE,
        token_used_at=used_at,
        instance=instance,
        elsewhere=None if is_connected else new.exclude(environment=attempt.environment).first(),
        counts=_count_results(attempt, instance, now),
        is_flag_on=FlagEnvironment.objects.filter(
            flag__name=attempt.flag, environment=attempt.environment, enabled=True
        ).exists(),
        refused=_find_refusal(attempt, caller) if may_create and not is_connected else None,
    )


def _new_instances(attempt: Attempt, caller: Caller) -> QuerySet[ApplicationInstance]:
    """SDKs that have registered since then, in applications that the caller may read."""
    instances = ApplicationInstance.objects.filter(first_seen_at__gte=attempt.since)
    if not caller.reads_all_projects:
        instances = instances.filter(application_id__in=find_readable_applications(caller).values("pk"))
    return instances.select_related("application").order_by("-first_seen_at")


def _find_instance(
    attempt: Attempt, new: QuerySet[ApplicationInstance], used_at: datetime | None
) -> ApplicationInstance | None:
    if attempt.token is not None and used_at is None:
        return None  # the registered SDK uses another token
    latest = list(new.filter(environment=attempt.environment)[:MAX_INSTANCES])
    if attempt.token is not None and len({instance.application_id for instance in latest}) > 1:
        return None
    return latest[0] if latest else None


def _find_use(attempt: Attempt) -> datetime | None:
    token = attempt.token
    return token.seen_at if token and token.seen_at and token.seen_at >= attempt.since else None


def _count_results(
    attempt: Attempt, instance: ApplicationInstance | None, now: datetime
) -> tuple[int, int] | None:
    flag = Flag.objects.filter(project=attempt.project, name=attempt.flag).values("pk").first()
    if instance is None or flag is None:
        return None
    hours = UsageHour.objects.filter(
        flag_id=flag["pk"],
        environment=attempt.environment,
        application_id=instance.application_id,
        hour__gte=now - timedelta(hours=2),
    )
    sums = hours.aggregate(on=Sum("yes"), off=Sum("no"))
    return (sums["on"], sums["off"]) if sums["on"] is not None else None


def _find_refusal(attempt: Attempt, caller: Caller) -> RefusedRequest | None:
    """The latest refusal, unless its token names a project that the caller may not read."""
    refused = RefusedRequest.objects.filter(seen_at__gte=attempt.since)
    if (readable := caller.readable_projects) is not None:
        refused = refused.filter(project__in=["", "*", "[]", *readable])
    return refused.order_by("-seen_at").first()


def refusal_words(refused: RefusedRequest) -> str:
    """``this token is not known here``"""
    return WORDS.get(refused.message) or refused.message.rstrip(".")


# Tokens -----------------------------------------------------------------------------------------------------


def may_create_token(caller: Caller, project_id: str, kind: str) -> bool:
    return caller.can(find_permission("CREATE", kind)) or caller.can(
        Permission.CREATE_PROJECT_API_TOKEN, project=project_id
    )


def usable_tokens(caller: Caller, project: Project, environment: str, kind: str) -> QuerySet[ApiToken]:
    """Tokens that read this project in this environment, and that the caller may see or has created."""
    tokens = ApiToken.objects.filter(kind=kind, environment=environment, pending_scope__isnull=True)
    tokens = tokens.filter(Q(all_projects=True) | Q(scopes__project_id=project.pk))
    tokens = tokens.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
    own = Q(created_by=caller.name)
    try:
        shown = own | Q(pk__in=find_visible_tokens(caller).values("pk"))
    except NoAccess:
        shown = own
    return tokens.filter(shown).distinct().order_by("-created_at")


def who_creates_tokens(project: Project) -> list[str]:
    """The names of some people who may: the project's owners, otherwise admins."""
    owners = (
        User.objects.people().active().filter(grants__project=project.pk, grants__role=BuiltIn.OWNER.value)
    )
    people = list(owners.order_by("username").distinct()[:MAX_PEOPLE])
    admins = User.objects.people().active().filter(root_role=BuiltIn.ADMIN.value).order_by("username")
    return [person.display_name for person in people or admins[:MAX_PEOPLE]]


# Environments and applications ------------------------------------------------------------------------------


def environments_of(project: Project) -> list[str]:
    """The project's enabled environments, production last."""
    environments = Environment.objects.filter(projects=project, enabled=True)
    by_stage = sorted(environments, key=lambda place: (place.is_production, place.sort_order, place.name))
    return [environment.name for environment in by_stage]


def connected_applications(project: Project, environment: str) -> Sequence[ProjectApplication]:
    """The applications that were seen last in the environment."""
    lines = ProjectApplication.objects.filter(project_id=project.pk, environments__contains=[environment])
    return list(lines.order_by("-last_seen_at")[:MAX_APPLICATIONS])


log = logging.getLogger("flagadmin.connect")

KEPT = timedelta(minutes=15)
MAX_ROWS = 200
MAX_NOTED = 20  # different ones in a second, of a worker
PAUSE = 1.0  # seconds
MAX_LENGTH = 100
MIN_SECRET = 20  # of a shorter one, four characters would reveal too much

_WRITE = """
INSERT INTO projects_refusedrequest AS known
       (fingerprint, seen_at, message, project, environment, ending, sdk, application, address)
SELECT * FROM unnest(%s::text[], %s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                     %s::text[], %s::text[]) ORDER BY 1
ON CONFLICT (fingerprint) DO UPDATE SET seen_at = greatest(known.seen_at, excluded.seen_at)
"""
_FORGET = """
DELETE FROM projects_refusedrequest WHERE fingerprint IN (
       SELECT fingerprint FROM projects_refusedrequest
        WHERE seen_at < %s OR seen_at < (SELECT seen_at FROM projects_refusedrequest
                                          ORDER BY seen_at DESC OFFSET %s LIMIT 1)
        ORDER BY 1 FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused: the columns of RefusedRequest, in their order."""

    message: str
    project: str
    environment: str
    ending: str
    sdk: str
    application: str
    address: str

    @property
    def fingerprint(self) -> str:
        parts = (
            self.message,
            self.project,
            self.environment,
            self.ending,
            self.sdk,
            self.application,
            self.address,
        )
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


class Refusals:
    """The refusals of a worker that are not stored yet. Thread-safe."""

    def __init__(self) -> None:
        self._noted: dict[Refusal, datetime] = {}
        self._lock = Lock()

    def note(self, request: Any, secret: str | None, error: AppError) -> None:
        """Notes the contents of an SDK's request, and the reason for its refusal."""
        refusal = describe(request, secret, error)
        with self._lock:
            if refusal in self._noted or len(self._noted) < MAX_NOTED:
                self._noted[refusal] = timezone.now()

    def flush(self) -> None:
        """Stores the notes, and deletes old or excess rows. During an outage of the database, they are lost."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if noted:
            with suppress(*outages.UNREACHABLE), committed_locally():
                _store(noted)
                _forget()

    async def run(self) -> None:
        """Stores the notes once a second."""
        while True:
            await asyncio.sleep(PAUSE)
            if self._noted:
                await asyncio.to_thread(self._flush_and_leave)

    def _flush_and_leave(self) -> None:
        try:
            self.flush()
        finally:
            connection.close()


def describe(request: Any, secret: str | None, error: AppError) -> Refusal:
    """Describes the request. ``secret`` was sent as a token."""
    secret = secret or ""
    headers = request.headers
    sdk = headers.get("Unleash-Sdk") or headers.get("X-Unleash-Sdk") or headers.get("User-Agent", "")
    application = headers.get("Unleash-Appname") or headers.get("X-Unleash-Appname", "")
    try:
        project, environment = parse_scope(secret)
    except ValueError:
        project = environment = ""
    ending = secret[-4:] if len(secret) >= MIN_SECRET else ""
    texts = (error.message, project, environment, ending, sdk, application, get_client_address(request))
    return Refusal(*map(_readable, texts))


def _readable(text: str) -> str:
    return "".join(filter(str.isprintable, text[:MAX_LENGTH]))


@transactional
def _store(noted: dict[Refusal, datetime]) -> None:
    rows: Sequence[tuple[Any, ...]] = [
        (refusal.fingerprint, at, refusal.message, refusal.project, refusal.environment, refusal.ending,
         refusal.sdk, refusal.application, refusal.address)
        for refusal, at in noted.items()
    ]  # fmt: skip
    execute(_WRITE, [list(column) for column in zip(*rows, strict=True)])


@transactional
def _forget() -> None:
    execute(_FORGET, [timezone.now() - KEPT, MAX_ROWS - 1])


refusals = Refusals()

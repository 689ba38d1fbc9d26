"""Reads the server's observations of an application that a user is connecting."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from flagadmin.core.errors import AuthenticationRequired, NoAccess
from groups.access import Caller
from groups.models import ApiToken, User
from groups.permissions import BuiltIn, Permission
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

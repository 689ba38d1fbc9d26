"""The start page's "Needs attention": failing expectations, suspended schedules, stale flags, waiting
imports, expiring tokens, outdated SDKs.

Each source is a function that yields at most MAX_COUNT items that the caller may read, with a bounded number of
queries. Flags of several projects form one item; so do applications. Add a new source as a function in ``_SOURCES``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from urllib.parse import urlencode

import orjson
from django.db.models import Count, F, Max, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NoAccess, pluralize
from flagadmin.core.lists.pages import cut
from flagadmin.core.templatetags.moments import SOON
from groups.access import Caller, Permission
from groups.models import ApiToken
from importer.models import ImportRun
from importer.pages.upload import describe_counts
from importer.runs import find_visible_runs
from integrations.addons.queries import find_readable, name_of
from integrations.models import Delivery
from integrations.signals.actions import list_suspended_rules
from integrations.signals.receive import list_deaf_safeguards
from playground.saved_contexts.expectations import Checked, check_expectations, list_expectations
from projects.applications.queries import list_missing_flags, list_outdated_applications
from projects.console import application_url, flag_url
from projects.flags.lists.cells import FlagCells, read_flag_cells
from projects.flags.lists.queries import count_removable_flags
from projects.models import Flag
from projects.tokens.access import describe_scope, find_visible_tokens, list_scope_projects
from releases.requests.queries import suspended
from releases.safeguards.queries import get_safeguard_path

RED, AMBER, GRAY = "red", "amber", "gray"
_ORDER = (RED, AMBER, GRAY)
MAX_ITEMS = 5
MAX_NAMED_FLAGS = 2
MAX_EXPECTATIONS = 1_000  # expectations checked for the start page
VERY_SOON = timedelta(days=2)
QUIET = timedelta(days=7)  # a flag not evaluated for this long is reported as such


@dataclass(frozen=True, slots=True)
class Attention:
    """An item that needs attention. ``action`` is the label of a link to ``url``.

    ``kind``: "expectation", "schedule", "signal", "stale", "import", "delivery", "token", "missing" or
    "sdk".
    ``level``: "red" if something fails, "amber" if it will fail, "gray" if it can wait.
    ``project``: the id of the only project concerned; "" if there are several or none.
    """

    kind: str
    level: str
    title: str
    detail: str
    action: str
    url: str
    about: Sequence[object]
    project: str = ""

    @property
    def key(self) -> str:
        """The key under which a dismissal is stored: the item reappears when ``about`` changes."""
        return sha256(orjson.dumps([self.kind, self.about])).hexdigest()[:16]


def list_attention(caller: Caller) -> list[Attention]:
    """The items, the most urgent first. About fifteen queries regardless of the amount of data."""
    now = timezone.now()
    items = [item for source in _SOURCES for item in source(caller, now)]
    return sorted(items, key=lambda item: _ORDER.index(item.level))


def _find_only_project(projects: Iterable[str]) -> str:
    """The project if all are the same, else ""."""
    different = set(projects)
    return different.pop() if len(different) == 1 else ""


# Flags ------------------------------------------------------------------------------------------------------


def _list_stale_flags(caller: Caller, now: datetime) -> Iterator[Attention]:
    flags = Flag.objects.active().readable_by(caller).filter(project__archived_at=None)
    counts = list(count_removable_flags(flags, now=now))
    if not counts:
        return
    where = [(row["project__name"], row["number"]) for row in counts]
    title = f"{pluralize(sum(number for _, number in where), 'flag')} in {_name_projects(where)} can go"
    level = AMBER if any(row["stale_flags"] for row in counts) else GRAY
    project = _find_only_project(row["project_id"] for row in counts)
    detail, url = "; ".join(_list_reasons(flags, now)), f"{reverse('all-flags')}?state=removable"
    yield Attention("stale", level, title, detail, "Review", url, where, project)


def _name_projects(counts: Sequence[tuple[str, int]]) -> str:
    return counts[0][0] if len(counts) == 1 else f"{len(counts):,} projects"


def _list_reasons(flags: QuerySet[Flag], now: datetime) -> list[str]:
    """Sentences about the first stale flags."""
    flags_named = list(flags.filter(stale=True).order_by("name")[:MAX_NAMED_FLAGS])
    changed_at = dict(
        AuditEvent.objects.filter(feature__in=[flag.name for flag in flags_named])
        .exclude(type__startswith="feature-stale")
        .order_by()
        .values_list("feature")
        .annotate(Max("created_at"))
    )
    return [
        _make_reason(cells, changed_at.get(cells.flag.name, cells.flag.created_at), now)
        for cells in read_flag_cells(flags_named)
    ]


def _make_reason(cells: FlagCells, changed_at: datetime, now: datetime) -> str:
    name, last_evaluated = cells.flag.name, cells.last_evaluated
    if last_evaluated is None:
        return f"{name}: never evaluated"
    if now - last_evaluated >= QUIET:
        return f"{name}: not evaluated for {_format_days(now - last_evaluated)}"
    production = [cell for cell in cells.cells if cell.production]
    if production and all(cell.share == 100 for cell in production):
        return f"{name}: at 100 % for {_format_days(now - changed_at)}"
    return f"{name}: marked as stale"


def _format_days(time: timedelta) -> str:
    return pluralize(max(1, time.days), "day")


# Expectations -----------------------------------------------------------------------------------------------


def _list_expectations(caller: Caller, now: datetime) -> Iterator[Attention]:
    """Expectations of saved contexts that are not met."""
    expected = list_expectations(caller)[:MAX_EXPECTATIONS]
    not_met = [result for result in check_expectations(caller, expected, reasons=False) if not result.met]
    if not_met:
        verb = "is" if len(not_met) == 1 else "are"
        yield Attention(
            "expectation",
            RED,
            f"{pluralize(len(not_met), 'expectation')} {verb} not met",
            "; ".join(map(_describe_not_met, not_met[:MAX_NAMED_FLAGS])),
            "Show",
            f"{reverse('expectations')}?met=no",
            about=[result.sentence for result in not_met],
            project=_find_only_project(result.expectation.project for result in not_met),
        )


def _describe_not_met(result: Checked) -> str:
    """`Norwegian pro user should get checkout-redesign in production, but it is off`"""
    expected = result.expectation
    what = f"variant {expected.variant} of {expected.flag}" if expected.variant else expected.flag
    should = "should get" if expected.enabled else "should not get"
    return f"{expected.saved.name} {should} {what} in {expected.environment}, but it is {result.actual}"


# Imports ----------------------------------------------------------------------------------------------------


def _list_imports(caller: Caller, now: datetime) -> Iterator[Attention]:
    """The caller's own pending imports, which no other user may confirm."""
    runs = find_visible_runs(caller).filter(state=ImportRun.State.PENDING).order_by("-created_at")
    for run in runs.annotate(problems=F("preview__problemCount"), refusal=F("preview__refusal"))[:MAX_ITEMS]:
        blocked = bool(run.problems or run.refusal)
        problems = pluralize(run.problems or 0, "problem") if run.problems else run.refusal
        yield Attention(
            "import",
            RED if blocked else AMBER,
            f"Import into {run.project} / {run.environment} {'is blocked' if blocked else 'awaits review'}",
            " · ".join(part for part in (problems, describe_counts(run), run.file_name) if part),
            "Review",
            reverse("import-run", args=[run.id]),
            about=[str(run.id), problems],
            project=run.project,
        )


def _list_schedules(caller: Caller, now: datetime) -> Iterator[Attention]:
    """Change requests that were not applied on schedule."""
    for request in suspended(caller).order_by("-schedule__at")[:MAX_ITEMS]:
        yield Attention(
            "schedule",
            RED,
            f"{request.title or f'Change request {request.pk}'} was not applied",
            f"{request.project_id}, {request.environment_id} · {request.schedule.reason}",
            "Review",
            reverse("change-request", args=[request.project_id, request.pk]),
            about=[request.pk, request.schedule.pk],
            project=request.project_id,
        )


def _list_suspended_rules(caller: Caller, now: datetime) -> Iterator[Attention]:
    """Rules of signals, such as kill switches, that another user has suspended by renewing the token."""
    for rule in list_suspended_rules(caller).order_by("-suspended_at")[:MAX_ITEMS]:
        yield Attention(
            "signal",
            RED,
            f"Rule {rule.name} of {rule.source.name} does nothing",
            f"{rule.suspended_by} replaced the token. Its author or an admin must save the rule again",
            "Show",
            reverse("signal-source", args=[rule.source_id]),
            about=[rule.pk, rule.suspended_at],
            project=rule.project,
        )


def _list_deaf_safeguards(caller: Caller, now: datetime) -> Iterator[Attention]:
    """Safeguards that wait for an alert which no source may tell them."""
    for safeguard in list_deaf_safeguards(caller)[:MAX_ITEMS]:
        project, flag, environment = get_safeguard_path(safeguard)
        yield Attention(
            "signal",
            RED,
            f"Safeguard {safeguard} of {flag} hears no alert",
            f"{environment} · It needs a source of signals of kind Alertmanager whose token an admin has made",
            "Show",
            flag_url(project, flag),
            about=[safeguard.pk],
            project=project,
        )


# Tokens -----------------------------------------------------------------------------------------------------


def _list_tokens(caller: Caller, now: datetime) -> Iterator[Attention]:
    own = Q(kind=ApiToken.Kind.PERSONAL, user=caller.user) if caller.user else Q(pk__in=[])
    try:
        visible = Q(pk__in=find_visible_tokens(caller).values("pk"))
    except NoAccess:
        visible = Q(pk__in=[])
    tokens = ApiToken.objects.filter(own | visible, expires_at__gt=now, expires_at__lte=now + SOON)
    for token in tokens.order_by("expires_at", "id").prefetch_related("scopes")[:MAX_ITEMS]:
        assert token.expires_at is not None
        left = token.expires_at - now
        personal = token.kind == ApiToken.Kind.PERSONAL
        level = RED if left <= VERY_SOON else AMBER
        used = "" if token.seen_at else "never used"
        yield Attention(
            "token",
            level,
            f"{'Personal' if personal else 'API'} token {token.name} expires {_format_time_left(left)}",
            " · ".join(filter(None, ("" if personal else describe_scope(token, caller), used))),
            "Show",
            reverse("account") if personal else f"{reverse('tokens')}?{urlencode({'q': token.name})}",
            about=[token.pk, level],
            project="" if token.all_projects else _find_only_project(list_scope_projects(token)),
        )


def _format_time_left(left: timedelta) -> str:
    return f"in {pluralize(left.days, 'day')}" if left.days else "within a day"


def _list_failed_deliveries(caller: Caller, now: datetime) -> Iterator[Attention]:
    """Integrations whose last delivery failed."""
    if not caller.can(Permission.ADMIN):
        return
    failed = Q(deliveries__state=Delivery.State.FAILED, deliveries__sent_at__gte=now - QUIET)
    counted = find_readable(caller).filter(enabled=True).annotate(failed=Count("deliveries", filter=failed))
    for integration in counted.filter(failed__gt=0).order_by("pk")[:MAX_ITEMS]:
        name, last = (
            name_of(integration),
            integration.deliveries.filter(state=Delivery.State.FAILED).latest("sent_at"),
        )
        yield Attention(
            "delivery",
            RED,
            f"{pluralize(integration.failed, 'delivery', 'deliveries')} of {name} failed",
            f"{integration.description}: {last.state_details}"
            if integration.description
            else last.state_details,
            "Show",
            f"{reverse('deliveries', args=[integration.pk])}?state={Delivery.State.FAILED}",
            about=[integration.pk, integration.failed, str(last.sent_at)],
        )


# Applications -----------------------------------------------------------------------------------------------


def _list_old_sdks(caller: Caller, now: datetime) -> Iterator[Attention]:
    outdated = list_outdated_applications(caller.readable_projects)
    if not outdated:
        return
    names = [f"{row.name}: {row.sdk} {row.version} → {row.newest}" for row in outdated]
    several = len({row.name for row in outdated}) > 1
    yield Attention(
        "sdk",
        GRAY,
        f"{len({row.name for row in outdated}):,} applications use old SDKs"
        if several
        else f"{outdated[0].name} uses an old SDK",
        " · ".join(cut(names, MAX_NAMED_FLAGS)) if several else names[0].partition(": ")[2],
        "Show",
        reverse("applications") if several else application_url(outdated[0].name),
        about=names,
    )


def _list_missing_flags(caller: Caller, now: datetime) -> Iterator[Attention]:
    """Flags that applications request but that do not exist."""
    missing = list_missing_flags(caller)
    if not missing:
        return
    reports = [f"{flag.name} by {', '.join(name for name, _ in flag.applications)}" for flag in missing]
    create_url = missing[0].create_url if len(missing) == 1 else ""
    yield Attention(
        "missing",
        AMBER,
        f"{pluralize(len(missing), 'flag')} asked for {'does' if len(missing) == 1 else 'do'} not exist",
        " · ".join(cut(reports, MAX_NAMED_FLAGS)),
        "Create it" if create_url else "Show them",
        create_url or f"{reverse('applications')}#missing",
        about=reports,
    )


_SOURCES: tuple[Callable[[Caller, datetime], Iterator[Attention]], ...] = (
    _list_expectations,
    _list_schedules,
    _list_suspended_rules,
    _list_deaf_safeguards,
    _list_imports,
    _list_failed_deliveries,
    _list_tokens,
    _list_stale_flags,
    _list_missing_flags,
    _list_old_sdks,
)

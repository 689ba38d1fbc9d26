"""What needs attention on the start page: failing expectations, stale flags, waiting imports, expiring
tokens, outdated SDKs.

Each source is a function that yields at most MAX_COUNT items from a bounded number of queries, of what the caller
may read. A new source is a function in ``_SOURCES``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import F, Max, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NoAccess, counted
from flagadmin.core.templatetags.moments import SOON
from groups.access import Caller
from groups.models import ApiToken
from importer.models import ImportRun
from importer.pages.history import counts_text
from importer.runs import visible_runs
from playground.saved_contexts.expectations import check_expectations, list_expectations
from projects.applications.queries import outdated_applications
from projects.console import application_url, project_url
from projects.flags.flag_cells import FlagCells, flag_cells
from projects.flags.list_queries import stale_flag_counts
from projects.models import Flag
from projects.tokens.access import scope_words, visible_tokens

RED, AMBER, GRAY = "red", "amber", "gray"
_ORDER = (RED, AMBER, GRAY)
MAX_ITEMS = 5
MAX_NAMED_FLAGS = 2
MAX_EXPECTATIONS = 1_000  # of those that are checked for the start page
VERY_SOON = timedelta(days=2)
QUIET = timedelta(days=7)  # a flag not evaluated for this long is said to be


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing to look at. ``action`` is the label of a link to ``url``.

    ``kind``: "expectation", "stale", "overdue", "import", "token" or "sdk". ``level``: "red" for what fails,
    "amber" for what will, "gray" for what can wait.
    """

    kind: str
    level: str
    title: str
    detail: str
    action: str
    url: str


def needs_attention(caller: Caller, *, now: datetime | None = None) -> list[Attention]:
    """The items, the most urgent first. About fifteen queries whatever the amount of data."""
    moment = now or timezone.now()
    items = [item for source in _SOURCES for item in source(caller, moment)]
    return sorted(items, key=lambda item: _ORDER.index(item.level))


# Flags ------------------------------------------------------------------------------------------------------


def _stale_flags(caller: Caller, now: datetime) -> Iterator[Attention]:
    flags = Flag.objects.active().readable_by(caller).filter(project__archived_at=None)
    counts = stale_flag_counts(flags, now=now)[:MAX_ITEMS]
    reasons = _reasons(
        flags.filter(project__in=[row["project_id"] for row in counts if row["stale_flags"]]), now
    )
    for row in counts:
        page, name = project_url(row["project_id"]), row["project__name"]
        if row["stale_flags"]:
            yield Attention(
                "stale",
                AMBER,
                f"{counted(row['stale_flags'], 'stale flag')} in {name}",
                "; ".join(reasons.get(row["project_id"], [])),
                "Show flags",
                f"{page}?state=stale",
            )
        if row["overdue"]:
            yield Attention(
                "overdue",
                GRAY,
                f"{counted(row['overdue'], 'flag')} in {name} past the expected lifetime",
                "Archive them, or mark them as stale",
                "Show flags",
                f"{page}?state=overdue",
            )


def _reasons(flags: QuerySet[Flag], now: datetime) -> dict[str, list[str]]:
    """Sentences about the first stale flags of each project."""
    position = Window(RowNumber(), partition_by="project_id", order_by="name")
    flags_named = list(flags.filter(stale=True).annotate(place=position).filter(place__lte=MAX_NAMED_FLAGS))
    changed_at = dict(
        AuditEvent.objects.filter(feature__in=[flag.name for flag in flags_named])
        .exclude(type__startswith="feature-stale")
        .order_by()
        .values_list("feature")
        .annotate(Max("created_at"))
    )
    reasons: dict[str, list[str]] = {}
    for cells in flag_cells(flags_named):
        reason = _reason(cells, changed_at.get(cells.flag.name, cells.flag.created_at), now)
        reasons.setdefault(cells.flag.project_id, []).append(reason)
    return reasons


def _reason(cells: FlagCells, changed_at: datetime, now: datetime) -> str:
    name, last_evaluated = cells.flag.name, cells.last_evaluated
    if last_evaluated is None:
        return f"{name} has never been evaluated"
    if now - last_evaluated >= QUIET:
        return f"{name} has not been evaluated for {_days(now - last_evaluated)}"
    production = [cell for cell in cells.cells if cell.production]
    if production and all(cell.share == 100 and not cell.conditional for cell in production):
        return f"{name} has been at 100 % for {_days(now - changed_at)}"
    return f"{name} is marked as stale"


def _days(time: timedelta) -> str:
    return counted(max(1, time.days), "day")


# Expectations -----------------------------------------------------------------------------------------------


def _expectations(caller: Caller, now: datetime) -> Iterator[Attention]:
    """Expectations of saved contexts that are not met."""
    expected = list_expectations(caller)[:MAX_EXPECTATIONS]
    not_met = [result for result in check_expectations(caller, expected, reasons=False) if not result.met]
    if not_met:
        verb = "is" if len(not_met) == 1 else "are"
        yield Attention(
            "expectation",
            RED,
            f"{counted(len(not_met), 'expectation')} {verb} not met",
            "; ".join(result.sentence for result in not_met[:MAX_NAMED_FLAGS]),
            "Show expectations",
            f"{reverse('expectations')}?met=no",
        )


# Imports ----------------------------------------------------------------------------------------------------


def _imports(caller: Caller, now: datetime) -> Iterator[Attention]:
    """The caller's own pending imports; nobody else may confirm them."""
    runs = visible_runs(caller).filter(state=ImportRun.State.PENDING).order_by("-created_at")
    for run in runs.annotate(problems=F("preview__problemCount"), refusal=F("preview__refusal"))[:MAX_ITEMS]:
        blocked = bool(run.problems or run.refusal)
        problems = counted(run.problems or 0, "problem") if run.problems else run.refusal
        yield Attention(
            "import",
            RED if blocked else AMBER,
            f"Import into {run.project} / {run.environment} {'is blocked' if blocked else 'awaits review'}",
            " · ".join(part for part in (problems, counts_text(run), run.file_name) if part),
            "Review",
            reverse("import-run", args=[run.id]),
        )


# Tokens -----------------------------------------------------------------------------------------------------


def _tokens(caller: Caller, now: datetime) -> Iterator[Attention]:
    own = Q(kind=ApiToken.Kind.PERSONAL, user=caller.user) if caller.user else Q(pk__in=[])
    try:
        visible = Q(pk__in=visible_tokens(caller).values("pk"))
    except NoAccess:
        visible = Q(pk__in=[])
    tokens = ApiToken.objects.filter(own | visible, expires_at__gt=now, expires_at__lte=now + SOON)
    for token in tokens.order_by("expires_at", "id").prefetch_related("scopes")[:MAX_ITEMS]:
        assert token.expires_at is not None
        left = token.expires_at - now
        personal = token.kind == ApiToken.Kind.PERSONAL
        used = f"last used {_ago(now - token.seen_at)}" if token.seen_at else "never used"
        yield Attention(
            "token",
            RED if left <= VERY_SOON else AMBER,
            f"{'Personal' if personal else 'API'} token {token.name} expires {_time_left(left)}",
            used if personal else f"{scope_words(token, caller)} · {used}",
            "Show token",
            reverse("account") if personal else f"{reverse('tokens')}?{urlencode({'q': token.name})}",
        )


def _time_left(left: timedelta) -> str:
    return f"in {counted(left.days, 'day')}" if left.days else "within a day"


def _ago(time: timedelta) -> str:
    return f"{counted(time.days, 'day')} ago" if time.days else "in the last 24 hours"


# Applications -----------------------------------------------------------------------------------------------


def _old_sdks(caller: Caller, now: datetime) -> Iterator[Attention]:
    for application in outdated_applications(caller.readable_projects)[:MAX_ITEMS]:
        yield Attention(
            "sdk",
            GRAY,
            f"{application.name} uses an old SDK",
            f"{application.sdk} {application.version}; others use up to {application.newest}",
            "Show application",
            application_url(application.name),
        )


_SOURCES: tuple[Callable[[Caller, datetime], Iterator[Attention]], ...] = (
    _expectations,
    _imports,
    _tokens,
    _stale_flags,
    _old_sdks,
)

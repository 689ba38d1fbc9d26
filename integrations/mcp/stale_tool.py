"""The tool that finds flags that can go, with the proof: what everybody gets, what depends on it, who still asks."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone
from pydantic import Field

from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from integrations.mcp.tool import Answer, Call, ListArguments, Tool
from playground.comparison.contexts import generate_contexts
from playground.comparison.results import StateResults
from playground.comparison.shares import Shares
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.outcomes import State
from playground.models import SavedContext
from playground.saved_contexts.expectations import compile_flags, read_stored_flags, shares_words
from projects.access import check_project
from projects.flags.evaluations import read_last_evaluations
from projects.flags.search_conditions import FULL, in_stage, overdue, rolled_out
from projects.models import Dependency, Flag, FlagType, LifecycleStage, ProjectEnvironment

FEW = 5
MAX_CONTEXTS = 300
QUIET = timedelta(days=7)
"""Without an evaluation for so long, no application asks any more: SDKs report every minute."""


class FindStaleFlags(ListArguments):
    project: str | None = Field(None, description="Id of a project; without it, all that you may read.")


def find_stale_flags(call: Call, asked: FindStaleFlags) -> Answer:
    now = timezone.now()
    flags = Flag.objects.active().readable_by(call.caller)
    if asked.project is not None:
        flags = flags.filter(project=check_project(call.caller, asked.project))
    reasons = _reasons(now)
    candidates = flags.filter(_any(reasons)).order_by("created_at", "name")
    listed = list(candidates[: asked.limit or FEW])
    return {
        "total": candidates.count(),
        "flags": [_prove(call.caller, flag, reasons, now) for flag in listed],
    }


def _reasons(now: datetime) -> dict[str, Q]:
    return {
        "marked as stale": Q(stale=True),
        "marked as completed": in_stage(LifecycleStage.Stage.COMPLETED),
        "older than its type lives": overdue(now),
        "on for everyone in production for 30 days": rolled_out(FULL),
    }


def _any(conditions: dict[str, Q]) -> Q:
    matches = Q(pk__in=[])
    for condition in conditions.values():
        matches |= condition
    return matches


def _prove(caller: Caller, flag: Flag, reasons: dict[str, Q], now: datetime) -> Answer:
    results = _results(caller, flag, now)
    seen = read_last_evaluations([flag.pk])[flag.pk]
    last_seen = max(seen.values(), default=None)
    dependents = list(
        Dependency.objects.filter(parent=flag, flag__archived_at=None).values_list("flag__name", flat=True)
    )
    is_constant = all(_is_certain(shares) for shares in results.values())
    is_quiet = last_seen is None or now - last_seen > QUIET
    kinds = dict(FlagType.objects.values_list("id", "lifetime_days"))
    matching = Flag.objects.filter(pk=flag.pk)
    return {
        "name": flag.name,
        "project": flag.project_id,
        "why": [words for words, condition in reasons.items() if matching.filter(condition).exists()],
        "ageDays": (now - flag.created_at).days,
        "lifetimeDays": kinds.get(flag.type),
        "everybodyGets": {name: _say(shares) for name, shares in results.items()},
        "lastEvaluated": {name: iso(at) for name, at in seen.items()},
        "dependents": dependents,
        "canLeaveTheCode": is_constant and not dependents,
        "canBeArchived": is_quiet and not dependents,
    }


def _results(caller: Caller, flag: Flag, now: datetime) -> dict[str, list[Shares]]:
    """What saved contexts and generated ones, which meet and miss each of its rules, get in each environment."""
    saved = SavedContext.objects.readable_by(caller).usable_in(flag.project_id)[:MAX_CONTEXTS]
    given = [Context(each.context).at(now) for each in saved]
    places = ProjectEnvironment.objects.filter(project=flag.project_id).order_by("environment__sort_order")
    results: dict[str, list[Shares]] = {}
    for environment in places.values_list("environment_id", flat=True):
        read = read_stored_flags([flag.project_id], environment, {flag.name})
        made = generate_contexts([read], now=now, limit=MAX_CONTEXTS)
        table = ContextTable([*given, *made])
        results[environment] = list(StateResults(compile_flags(read, environment), table).results(flag.name))
    return results


def _is_certain(results: list[Shares]) -> bool:
    """Whether everybody gets the same on every call, which no SDK has to find out."""
    return len(results) == len(results[0]) == 1 and results[0][0][0].state is not State.UNKNOWN


def _say(results: list[Shares]) -> str:
    return shares_words(results[0]) if len(results) == 1 else "not the same"


TOOLS = [
    Tool(
        "find_stale_flags",
        "Find flags that can go",
        "Flags that are past their time, oldest first, each with the proof: what everybody gets in each environment "
        "(saved contexts, and generated ones that meet and miss each rule), when it was last evaluated, what depends "
        "on it.",
        FindStaleFlags,
        find_stale_flags,
    )
]

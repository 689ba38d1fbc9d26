"""Removable flags with proof: their result for everyone, their dependents, and their last use."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max, Q

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.comparison.contexts import generate_contexts
from playground.comparison.results import Answer, Shares, StateResults
from playground.comparison.table import ContextTable
from playground.engine.context import Context, format_time
from playground.engine.literals import read_instant
from playground.engine.outcomes import State
from playground.models import SavedContext
from playground.saved_contexts.expectations import compile_flags, describe_shares, read_stored_flags
from projects.definitions import Definitions
from projects.flags.insights.evaluations import read_last_evaluations
from projects.flags.lists.conditions import removable
from projects.flags.queries import ORDER
from projects.models import Dependency, Flag, FlagQuerySet, FlagType, LifecycleStage, ProjectEnvironment
from projects.references.actions import InRepository, read_references

MAX_CONTEXTS = 300
QUIET = timedelta(days=7)
"""Time without an evaluation after which a flag counts as unused: SDKs report every minute."""
COMPLETED = LifecycleStage.Stage.COMPLETED


@dataclass(frozen=True, slots=True)
class Proof:
    """The reasons why a flag can be removed, or not yet.

    ``results`` are by environment: a single one if everyone gets the same result. ``completed`` is the stage of a
    flag that is marked as completed. ``production`` are the production environments.
    """

    flag: Flag
    now: datetime
    why: Sequence[str]
    lifetime_days: int | None
    results: Mapping[str, Sequence[Shares]]
    production: frozenset[str]
    seen: Mapping[str, datetime]
    changed_at: datetime
    dependents: Sequence[str] = ()
    completed: LifecycleStage | None = None
    in_code: Sequence[InRepository] = ()

    @property
    def age_days(self) -> int:
        return (self.now - self.flag.created_at).days

    @property
    def unchanged_days(self) -> int:
        return (self.now - self.changed_at).days

    @property
    def last_seen(self) -> datetime | None:
        return max(self.seen.values(), default=None)

    @property
    def everybody_gets(self) -> dict[str, str]:
        return {
            name: describe_shares(results[0]) if len(results) == 1 else "differs by user"
            for name, results in self.results.items()
        }

    @property
    def kept(self) -> Answer | None:
        """The result to keep in the code: everyone's result in production. None if there are several."""
        among = self.production or self.results.keys()
        answers = {self._find_certain(results) for name, results in self.results.items() if name in among}
        return answers.pop() if len(answers) == 1 else None

    @staticmethod
    def _find_certain(results: Sequence[Shares]) -> Answer | None:
        """The result that everyone gets on every call; None if it differs or only an SDK can tell."""
        if len(results) == len(results[0]) == 1 and results[0][0][0].state is not State.UNKNOWN:
            return results[0][0][0]
        return None

    @property
    def differing(self) -> list[str]:
        """Environments in which results differ between users."""
        return [name for name, results in self.results.items() if self._find_certain(results) is None]

    @property
    def is_quiet(self) -> bool:
        return self.last_seen is None or self.now - self.last_seen > QUIET

    @property
    def can_leave_the_code(self) -> bool:
        """Whether removal would not be noticeable in production. Trials elsewhere end with the code."""
        return self.kept is not None and not self.dependents

    @property
    def can_be_archived(self) -> bool:
        """Whether it is not requested, is in no reported code, and is needed by no flag."""
        return self.is_quiet and not self.dependents and not self.in_code


def find_candidates(flags: FlagQuerySet, reasons: Mapping[str, Q]) -> FlagQuerySet:
    """The active flags with any of the reasons, the oldest first."""
    return flags.filter(removable(reasons)).order_by("created_at", "name")


def prove_flags(
    flags: Sequence[Flag], reasons: Mapping[str, Q], *, now: datetime, caller: Caller
) -> list[Proof]:
    """The proofs in the order of the flags. Each environment of each of their projects is read once."""
    ids, names = [flag.pk for flag in flags], [flag.name for flag in flags]
    seen, lifetimes = read_last_evaluations(ids), dict(FlagType.objects.values_list("id", "lifetime_days"))
    why = {
        words: set(Flag.objects.filter(condition, pk__in=ids).values_list("pk", flat=True))
        for words, condition in reasons.items()
    }
    changes = AuditEvent.objects.filter(feature__in=names).order_by().values_list("feature")
    changed = dict(changes.annotate(Max("created_at")))
    children: dict[int, list[str]] = defaultdict(list)
    rows = Dependency.objects.filter(parent__in=ids, flag__archived_at=None).order_by("flag__name")
    for parent, child in rows.values_list("parent", "flag__name"):
        children[parent].append(child)
    results = _evaluate(flags, now, caller)
    places = ProjectEnvironment.objects.filter(project__in={flag.project_id for flag in flags})
    production = {
        (link.project_id, link.environment_id)
        for link in places.select_related("environment")
        if link.environment.is_production
    }
    completed, in_code = _read_completed(ids), read_references(ids)
    return [
        Proof(
            flag,
            now,
            [words for words, matching in why.items() if flag.pk in matching],
            lifetimes.get(flag.type),
            results[flag.name],
            frozenset(name for project, name in production if project == flag.project_id),
            seen[flag.pk],
            changed.get(flag.name, flag.created_at),
            children[flag.pk],
            completed.get(flag.pk),
            in_code[flag.pk],
        )
        for flag in flags
    ]


def _read_completed(ids: Sequence[int]) -> dict[int, LifecycleStage]:
    assert ORDER.index(COMPLETED) == len(ORDER) - 2, "active flags have no later stage"
    return {row.flag_id: row for row in LifecycleStage.objects.filter(flag__in=ids, stage=COMPLETED)}


def _evaluate(flags: Sequence[Flag], now: datetime, caller: Caller) -> dict[str, dict[str, Sequence[Shares]]]:
    """Evaluates flags in each environment, for saved contexts and generated ones, which meet and miss each rule."""
    results: dict[str, dict[str, Sequence[Shares]]] = {flag.name: {} for flag in flags}
    names: dict[str, set[str]] = defaultdict(set)
    for flag in flags:
        names[flag.project_id].add(flag.name)
    for project, its_names in names.items():
        saved = SavedContext.objects.readable_by(caller).usable_in(project)[:MAX_CONTEXTS]
        saved_contexts = [Context(each.context).at(now) for each in saved]
        places = ProjectEnvironment.objects.filter(project=project).order_by("environment__sort_order")
        for environment in places.values_list("environment_id", flat=True):
            read = read_stored_flags([project], environment, its_names)
            snapshot = compile_flags(read, environment)
            for name in its_names:
                generated = generate_contexts([_add_parents(read, name)], now=now, limit=MAX_CONTEXTS)
                table = ContextTable([*saved_contexts, *_drop_past(generated, now)])
                results[name][environment] = list(StateResults(snapshot, table).results(name))
    return results


def _drop_past(contexts: Sequence[Context], now: datetime) -> list[Context]:
    """Drops contexts with a past time: only present and future times matter for a date condition."""
    present = read_instant(format_time(now))
    times = [(context, read_instant(context.values.get("currentTime"))) for context in contexts]
    return [context for context, time in times if time is None or present is None or time >= present]


def _add_parents(read: Definitions, name: str) -> Definitions:
    by_name = read.by_name()
    parents = [parent["feature"] for parent in by_name[name]["dependencies"]] if name in by_name else []
    named = [by_name[each] for each in dict.fromkeys([name, *parents]) if each in by_name]
    return Definitions(named, read.segments)


MAX_PLACES = 20
"""The maximum number of places listed for a repository in a task."""


def make_proof_document(proof: Proof) -> Document:
    flag = proof.flag
    return {
        "name": flag.name,
        "project": flag.project_id,
        "why": list(proof.why),
        "ageDays": proof.age_days,
        "lifetimeDays": proof.lifetime_days,
        "unchangedDays": proof.unchanged_days,
        "everybodyGets": proof.everybody_gets,
        "keep": make_kept_document(proof.kept),
        "lastEvaluated": {name: iso(at) for name, at in proof.seen.items()},
        "dependents": list(proof.dependents),
        "inCode": [{"repository": each.report.repository, "count": each.count} for each in proof.in_code],
        "isCompleted": proof.completed is not None,
        "canLeaveTheCode": proof.can_leave_the_code,
        "canBeArchived": proof.can_be_archived,
        "task": write_task(proof),
    }


def make_kept_document(kept: Answer | None) -> Document | None:
    if kept is None:
        return None
    return {"isEnabled": kept.state is State.ON, "variant": kept.variant}


def write_task(proof: Proof) -> str:
    """A ticket, or the prompt of an agent; "" while the flag must stay. Quotes the flag's name as data."""
    kept, name = proof.kept, proof.flag.name
    if kept is None or not proof.can_leave_the_code:
        return ""
    if kept.state is not State.ON:
        keep = "Keep what runs while it is off, and delete what runs while it is on."
    elif kept.variant is None:
        keep = "Keep what runs while it is on, and delete what runs while it is off."
    else:
        keep = f'Keep what runs for its variant "{kept.variant}", and delete all else.'
    gets = ", ".join(f"{environment}: {words}" for environment, words in proof.everybody_gets.items())
    where = "" if not proof.differing else " in production"
    lines = [
        f'Remove the feature flag "{name}" from the code.',
        "",
        f"Everybody gets the same result{where} ({gets}), and it has not changed for {proof.unchanged_days} days.",
        keep,
        "Delete code, tests, configuration and translations that nothing uses then.",
    ]
    if proof.differing:
        lines.append(f"What is tried in {', '.join(proof.differing)} ends with it: ask who does.")
    if proof.in_code:
        lines += ["", "It is in these places:"]
    for each in proof.in_code:
        lines += [
            f"- {each.report.repository}: {place.path}:{place.line}" for place in each.places[:MAX_PLACES]
        ]
        if each.count > MAX_PLACES:
            lines.append(f"- {each.report.repository}: {each.count - MAX_PLACES:,} more")
    return "\n".join(lines)

"""Body + present state → what an import would do, flag by flag. Reads only, in a fixed number of statements."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson
from django.db import connection
from django.utils import timezone

from groups.access import Caller
from groups.permissions import Permission
from importer.body.schema_errors import refusal
from importer.body.schemas import Body
from importer.isolation import heavy_work
from importer.plan.dependencies import dependency_findings
from importer.plan.desired_state import wanted_document
from importer.plan.entries import Entries, Entry, gather, wrong_children
from importer.plan.import_plan import Action, FlagPlan
from importer.plan.issues import Finding, Kind
from importer.plan.permissions import missing_permissions, needed_permissions, no_access
from importer.plan.references import Words, read_words
from importer.plan.stored import StoredFlag, read_flags
from importer.plan.target import Target, find_target
from projects.flags.name_rules import name_problem, pattern_problem


@dataclass
class Plan:
    """``findings`` stand against the import, as do ``missing`` permissions; ``notes`` do not.

    ``defaulted`` are the flags that get the default strategy, ``sources`` the environments the file came from.
    """

    body: Body
    target: Target | None
    flags: dict[str, FlagPlan] = field(default_factory=dict)
    words: Words | None = None
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    defaulted: list[str] = field(default_factory=list)
    missing: list[Permission] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    made_at: datetime = field(default_factory=timezone.now)

    @property
    def is_green(self) -> bool:
        return not self.findings and not self.missing

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many flags are created, changed, the same, skipped, refused, by the action's name."""
        counted = Counter(flag.action for flag in self.flags.values())
        return {action.value: counted[action] for action in Action}

    def with_action(self, *actions: Action) -> Iterator[FlagPlan]:
        return (flag for flag in self.flags.values() if flag.action in actions)

    @cached_property
    def fingerprint(self) -> str:
        """Of the state that the plan was made on: another one means that something it depends on has changed."""
        state: list[Any] = [
            [flag.name, flag.stored and [flag.stored.project, flag.stored.archived, flag.stored.document]]
            for flag in sorted(self.flags.values(), key=lambda flag: flag.name)
        ]
        if self.words is not None and self.target is not None:
            words = self.words
            state += [
                sorted(words.vocabulary.strategy_types),
                [[field, sorted(values)] for field, values in sorted(words.vocabulary.legal_values.items())],
                sorted((float(key), value) for key, value in words.segment_ids.items()),
                [words.new_fields, words.new_tag_types, words.new_segments],
                [
                    self.target.default_strategy,
                    self.target.environments,
                    self.target.project.default_stickiness,
                ],
            ]
        state.append(sorted((finding.path, finding.message) for finding in self.findings))
        return hashlib.sha256(orjson.dumps(state, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def check(self) -> None:
        """Raises NoAccess for missing permissions first, else ValidationError with everything that is wrong."""
        if self.missing:
            raise no_access(self.missing, self.body.project)
        if self.findings:
            problems = (finding.problem() for finding in self.findings)
            raise refusal(problems, len(self.findings))


@heavy_work
def plan_import(body: Body, *, caller: Caller) -> Plan:
    """What importing this body would do now."""
    plan = Plan(body, None)
    target, plan.findings = find_target(body.project, body.environment, caller=caller)
    plan.target = target
    if target is None:
        return plan
    entries = gather(body)
    names = {*entries.flags, *(p["feature"] for e in entries.flags.values() for _, p in e.parents or ())}
    stored = read_flags(names, project=target.project.id, environment=target.environment)
    live = {name: entry for name, entry in entries.flags.items() if not _is_skipped(entry, stored.get(name))}
    used_tag_types = {tag[1] for entry in live.values() for tag in entry.tags}
    plan.words = read_words(body.data, target, entries, used_tag_types)
    plan.findings += [*entries.findings, *plan.words.findings]
    for entry in entries.flags.values():
        plan.flags[entry.name] = _plan_flag(entry, stored.get(entry.name), plan, caller)
    plan.findings += dependency_findings(plan, live, stored, caller)
    plan.findings += _limit_findings(plan)
    plan.missing = missing_permissions(
        needed_permissions(plan, entries), target.project.id, target.environment, caller=caller
    )
    plan.notes = [*entries.notes, *plan.words.notes, *wrong_children(entries), *_notes(plan, entries)]
    plan.sources = sorted(entries.sources)
    _refuse_found(plan)
    return plan


def _is_skipped(entry: Entry, stored: StoredFlag | None) -> bool:
    """An archived flag is not brought back by an import. To switch it or to link it is refused."""
    if stored is None or not stored.archived or _stays_archived(entry, stored):
        return False
    return entry.links is None and (entry.feature is not None or entry.enabled is None)


def _stays_archived(entry: Entry, stored: StoredFlag) -> bool:
    """Here and by the file too, as in a backup: then the rest of it can be put in place."""
    return bool(stored.document and entry.feature and entry.feature.get("archived"))


def _plan_flag(entry: Entry, stored: StoredFlag | None, plan: Plan, caller: Caller) -> FlagPlan:
    name, target, words = entry.name, plan.target, plan.words
    assert target is not None
    assert words is not None
    flag = FlagPlan(name, entry.path, Action.REFUSE, stored, feature=entry.feature)
    if _is_skipped(entry, stored):
        flag.action = Action.SKIP
        flag.reason = f"{name} is archived{_where(stored, target, caller)} and will be skipped."
    elif found := _place_finding(entry, stored, target, caller):
        plan.findings.append(found)
    else:
        if stored is None:
            plan.findings += _name_findings(entry, target)
        present = stored.document if stored else None
        flag.after = wanted_document(entry, present, words, target, plan.findings)
        flag.action = Action.CREATE if stored is None else Action.CHANGE
        if flag.before == flag.after:  # kept once: of many flags, twice is much memory
            flag.action, flag.after = Action.SAME, flag.before
    return flag


def _where(stored: StoredFlag | None, target: Target, caller: Caller) -> str:
    if stored is None or stored.project == target.project.id:
        return " here"
    return f" in project {stored.project}" if caller.can_read(stored.project) else " in another project"


def _place_finding(entry: Entry, stored: StoredFlag | None, target: Target, caller: Caller) -> Finding | None:
    """A flag must be of this project and active, or new and listed in ``features``."""
    name, path = entry.name, f"{entry.path}.name" if entry.feature is not None else entry.path
    if stored is None and entry.feature is None:
        return Finding(Kind.VALUE, path, f"there is no flag {name}, here or in data.features", name)
    if stored is not None and stored.project != target.project.id:
        where = _where(stored, target, caller).strip()
        return Finding(Kind.OTHER_PROJECT, path, f"{name} exists already, {where}", name, f"{name} ({where})")
    if stored is not None and stored.archived and not _stays_archived(entry, stored):
        return Finding(Kind.VALUE, path, f"{name} is archived here. Restore it first", name)
    return None


def _name_findings(entry: Entry, target: Target) -> Iterator[Finding]:
    path, name = f"{entry.path}.name", entry.name
    if problem := name_problem(name):
        yield Finding(Kind.VALUE, path, f'"{name[:120]}": {problem}', name)
    elif problem := pattern_problem(name, target.project):
        yield Finding(Kind.PATTERN, path, problem, name, name)


def _limit_findings(plan: Plan) -> Iterator[Finding]:
    target = plan.target
    assert target is not None
    new = sum(not flag.after["archived"] for flag in plan.with_action(Action.CREATE) if flag.after)
    if not new:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE project_id = %s) FROM projects_flag WHERE archived_at IS NULL",
            [target.project.id],
        )
        everywhere, here = cursor.fetchone()
    limit = target.project.flag_limit
    if limit is not None and here + new > limit:
        yield Finding(
            Kind.FLAG_LIMIT,
            "data.features",
            f"We detected you want to create {new} new features to a project that already has {here} existing "
            f"features, exceeding the maximum limit of {limit}.",
        )
    if everywhere + new > target.limits.flags:
        yield Finding(
            Kind.VALUE,
            "data.features",
            f"{new} new flags would make {everywhere + new}; at most {target.limits.flags} are allowed here",
        )


def _notes(plan: Plan, entries: Entries) -> Iterator[str]:
    for flag in plan.flags.values():
        entry = entries.flags[flag.name]
        if flag.after is None:
            continue
        kept = (flag.before or {}).get("strategies", ()) if entry.feature is None else ()
        if len(flag.after["strategies"]) > len(entry.strategies) + len(kept):
            plan.defaulted.append(flag.name)
        if entry.feature is None:
            yield f"{flag.name} is not in data.features: what the file says of it is added to what it has."


def _refuse_found(plan: Plan) -> None:
    """A flag that a finding is about is refused, and so is what it would become."""
    reasons: dict[str, str] = {}
    for finding in plan.findings:
        for name in (finding.flag, *finding.users):
            if name is not None:
                reasons.setdefault(name, f"{finding.path}: {finding.message}")
    for name, reason in reasons.items():
        if flag := plan.flags.get(name):
            flag.action, flag.reason = Action.REFUSE, reason

"""Plans an import: compares its body with the database, without writing, in a fixed number of statements."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flagadmin.core.db.statements import fetch_row
from flagadmin.core.document import Document
from flagadmin.core.errors import NoAccess, Problem, list_some
from groups.access import Caller, Permission
from importer.body.schemas import Body
from importer.bulk_work import bulk_work
from importer.plan.checks import (
    change_permissions,
    describe_location,
    find_dependency_issues,
    find_location_issue,
    find_missing_permissions,
    is_skipped,
    list_missing_variants,
    list_needed_permissions,
)
from importer.plan.desired_state import build_desired_document
from importer.plan.entries import Entries, Entry, gather, list_notes_on_children
from importer.plan.import_plan import Action, FlagPlan, Plan, SavedContextPlan, StoredFlag, read_flags
from importer.plan.references import References, resolve_references
from importer.plan.target import Issue, IssueKind, Target, find_target
from playground.models import SavedContext
from playground.saved_contexts.actions import (
    MAX_EXPECTATIONS,
    MAX_IN_A_PROJECT,
    Known,
    expectation_problems,
    make_expectation_documents,
    saved_context_problems,
)
from playground.saved_contexts.enforcement import enforce
from projects.flags.name_rules import find_name_problem, find_pattern_problem
from projects.flags.payloads.rules import PayloadCheck
from projects.flags.payloads.stored import read_variants
from projects.models import Environment, Flag, FlagType

NOTHING: Document = {"context": {}, "note": "", "expectations": []}


@dataclass(frozen=True, slots=True)
class _Around:
    """The data for comparing the entries. ``flags`` are the file's flags."""

    target: Target
    stored: Mapping[str, SavedContext]
    flags: frozenset[str]
    known: Known


def plan_saved_contexts(plan: Plan, entries: Sequence[Any], target: Target, caller: Caller) -> None:
    """Adds the plans of these entries, and their issues. Four statements; none without entries."""
    if not entries:
        return
    names = [entry["name"].strip() for entry in entries]
    stored = {saved.name: saved for saved in SavedContext.objects.filter(name__in=names)}
    around = _Around(target, stored, frozenset(plan.flags), _find_known_names(plan, entries, caller))
    for index, (name, entry) in enumerate(zip(names, entries, strict=True)):
        path = f"data.savedContexts[{index}]"
        planned = _plan_saved_context(name, entry, around)
        problems = [] if name not in plan.saved_contexts else [Problem("name", "is listed more than once")]
        problems += _problems(planned, entry, around, caller)
        plan.issues += [
            Issue(IssueKind.VALUE, f"{path}.{problem.path}", f"saved context {name[:120]}: {problem.message}")
            for problem in problems
        ]
        plan.saved_contexts[name] = planned
    plan.issues += _limit_context_issues(plan.saved_contexts.values())


def _find_known_names(plan: Plan, entries: Iterable[Any], caller: Caller) -> Known:
    """The names of flags that exist after the import."""
    named = {expectation["flag"] for entry in entries for expectation in entry.get("expectations", ())}
    flags = Flag.objects.active().readable_by(caller).filter(name__in=named)
    projects: dict[str, str] = dict(flags.values_list("name", "project_id"))
    for name in named & plan.flags.keys():
        after = plan.flags[name].after
        if after is not None and not after["archived"]:
            projects[name] = plan.project
        elif after is not None:
            projects.pop(name, None)
    return Known(projects, set(Environment.objects.values_list("name", flat=True)))


def _plan_saved_context(name: str, entry: Any, around: _Around) -> SavedContextPlan:
    saved = around.stored.get(name)
    before = {key: getattr(saved, key) for key in NOTHING} if saved else None
    after = {
        "context": entry["context"],
        "note": (entry.get("note") or "").strip(),
        "expectations": list(_merge_expectations(entry, before or NOTHING, around)),
    }
    if saved is not None:
        project = saved.project_id
    else:
        project = around.target.project.id if entry.get("project") else None
    enforced_in = saved.enforced_in if saved else {}
    return SavedContextPlan(name, project, Action.CREATE, before, after, enforced_in)


def _read_expectations(entry: Any, environment: str) -> list[Document]:
    return make_expectation_documents(
        [expectation | {"environment": environment} for expectation in entry.get("expectations", ())]
    )


def _merge_expectations(entry: Any, before: Document, around: _Around) -> Iterator[Document]:
    """Merges the expectations; those of other environments and other flags stay unchanged."""
    environment = around.target.environment
    incoming = {expectation["flag"]: expectation for expectation in _read_expectations(entry, environment)}
    for expectation in before["expectations"]:
        if (
            expectation["environment"] != environment
            or expectation["flag"] not in around.flags | incoming.keys()
        ):
            yield expectation
        elif expectation["flag"] in incoming:
            yield incoming.pop(expectation["flag"])
    yield from incoming.values()


def _problems(planned: SavedContextPlan, entry: Any, around: _Around, caller: Caller) -> Iterator[Problem]:
    """Normalizes the context; then determines whether the plan changes anything, and which projects enforce it."""
    if planned.project not in (None, around.target.project.id):
        yield Problem("name", "belongs to another project")
        return
    saved = SavedContext(name=planned.name, context=planned.after["context"], note=planned.after["note"])
    yield from saved_context_problems(saved)
    planned.after["context"] = saved.context
    expectations = _read_expectations(entry, around.target.environment)
    stored = planned.before["expectations"] if planned.before else ()
    yield from expectation_problems(expectations, stored=stored, project=planned.project, known=around.known)
    if len(expectations) <= MAX_EXPECTATIONS < len(planned.after["expectations"]):
        yield Problem("expectations", f"would be more than {MAX_EXPECTATIONS} with those of other flags")
    if planned.before is not None:
        planned.action = Action.SAME if planned.before == planned.after else Action.CHANGE
    if planned.action is not Action.SAME:
        yield from _enforcement_problems(planned, around, caller)


def _enforcement_problems(planned: SavedContextPlan, around: _Around, caller: Caller) -> Iterator[Problem]:
    """A problem if the caller may not state expectations. Plans which projects enforce them."""
    saved = SavedContext(
        project_id=planned.project,
        context=planned.after["context"],
        expectations=planned.after["expectations"],
        enforced_in=planned.enforced_in,
    )
    try:
        enforce(saved, caller, before=planned.before, projects=around.known.flags)
    except NoAccess as error:
        yield Problem("expectations", error.message)
    planned.enforced_in = saved.enforced_in


def _limit_context_issues(plans: Iterable[SavedContextPlan]) -> Iterator[Issue]:
    new = [planned.project for planned in plans if planned.action is Action.CREATE]
    for project in dict.fromkeys(new):
        stored = SavedContext.objects.filter(project=project).count()
        if stored + new.count(project) > MAX_IN_A_PROJECT:
            where = f"project {project}" if project else "no project"
            message = f"there would be more than {MAX_IN_A_PROJECT:,} saved contexts of {where}"
            yield Issue(IssueKind.VALUE, "data.savedContexts", message)


@bulk_work
def plan_import(body: Body, *, caller: Caller) -> Plan:
    """Plans an import of this body now. Reads the database, writes nothing."""
    plan = Plan(body.project, body.environment, parts=body.parts)
    plan.target, plan.issues = find_target(body.project, body.environment, caller=caller)
    if plan.target is not None:
        _plan_flags(plan, plan.target, gather(body), body.data.get("savedContexts", ()), caller)
    else:
        plan.issues += _find_body_issues(gather(body))
    if plan.parts is not None:
        plan.issues = list(_move_to_request(plan))
    _refuse_flags_with_issues(plan)
    return plan


def _find_payload_issues(plan: Plan) -> Iterator[Issue]:
    """JSON payloads that do not satisfy the payload schemas of their flags.

    Of this environment, and those stored in others if the schema changes. At most two statements.
    """
    flags = [f for f in plan.with_action(Action.CREATE, Action.CHANGE) if "payloadSchema" in (f.after or ())]
    changed = [flag.stored.id for flag in flags if flag.stored and flag.differs("payloadSchema")]
    elsewhere = read_variants(changed, without=plan.environment) if changed else {}
    check = PayloadCheck()
    for flag in flags:
        assert flag.after is not None
        here = f"{flag.name}.{plan.environment}"
        places = [(f"{here}.variants", flag.after["variants"])]
        places += [(f"{here}.strategies.variants", each["variants"]) for each in flag.after["strategies"]]
        places += elsewhere.get(flag.stored.id, ()) if flag.stored else ()
        for problem in check.flag_problems(flag.after["payloadSchema"], places):
            yield Issue(IssueKind.VALUE, problem.path, problem.message, flag.name)


def _find_body_issues(entries: Entries) -> Iterator[Issue]:
    """Malformed entries. As in the reference, invalid names come after the project."""
    yield from entries.issues
    if nameless := entries.flags.get(""):
        yield from _find_name_issues(nameless)


def _move_to_request(plan: Plan) -> Iterator[Issue]:
    """The issues of a promotion with the paths of its request, which names only flags and environments."""
    places = {name: f"features[{index}]" for index, name in enumerate(plan.flags)}
    for issue in plan.issues:
        name = next((name for name in (issue.flag, *issue.users) if name in places), None)
        path = "to" if issue.path == "environment" else issue.path
        yield replace(issue, path=places[name] if name is not None else path)


def _plan_flags(
    plan: Plan, target: Target, entries: Entries, saved_contexts: Sequence[Any], caller: Caller
) -> None:
    names = {*entries.flags, *(p["feature"] for e in entries.flags.values() for _, p in e.parents or ())}
    stored = read_flags(names, project=plan.project, environment=plan.environment)
    live = {name: entry for name, entry in entries.flags.items() if not is_skipped(entry, stored.get(name))}
    used_tag_types = {tag[1] for entry in live.values() for tag in entry.tags}
    references = plan.references = resolve_references(entries, target, used_tag_types)
    plan.issues += [*entries.issues, *references.issues]
    for entry in entries.flags.values():
        plan.flags[entry.name] = _plan_flag(
            entry, stored.get(entry.name), plan, target, references, caller=caller
        )
    plan.issues += find_dependency_issues(plan, live, stored, caller)
    plan.issues += _find_payload_issues(plan)
    plan.issues += _limit_issues(plan, target)
    plan_saved_contexts(plan, saved_contexts, target, caller)
    not_skipped = [flag for flag in plan.flags.values() if flag.action is not Action.SKIP]
    if plan.parts is None:
        needed = list_needed_permissions(not_skipped, entries, references)
    else:
        needed = change_permissions(not_skipped, plan.environment, switch="enabled" in plan.parts)
    if any(
        planned.project is None and planned.action is not Action.SAME
        for planned in plan.saved_contexts.values()
    ):
        needed.append(Permission.UPDATE_CONTEXT_FIELD)
    plan.missing_permissions = find_missing_permissions(needed, plan.project, plan.environment, caller=caller)
    plan.notes = [
        *entries.notes,
        *references.notes,
        *list_notes_on_children(entries),
        *_list_notes(plan, entries),
    ]
    plan.custom_strategy_types = sorted(entries.strategy_types() & references.custom_strategy_types)
    plan.sources = sorted(entries.sources)


def _plan_flag(
    entry: Entry,
    stored: StoredFlag | None,
    plan: Plan,
    target: Target,
    references: References,
    *,
    caller: Caller,
) -> FlagPlan:
    name = entry.name
    flag = FlagPlan(name, entry.path, Action.REFUSE, stored, feature=entry.feature)
    if is_skipped(entry, stored):
        flag.action = Action.SKIP
        flag.reason = f"{name} is archived{describe_location(stored, target, caller)} and will be skipped."
    elif issue := find_location_issue(entry, stored, target, caller):
        plan.issues.append(issue)
    else:
        if stored is None:
            plan.issues += _find_name_issues(entry, target)
        before = stored.document if stored else None
        flag.after = build_desired_document(entry, before, references, target, plan.issues)
        flag.action = Action.CREATE if stored is None else Action.CHANGE
        if flag.before == flag.after:  # share one document: two for each of many flags take much memory
            flag.action, flag.after = Action.SAME, flag.before
        elif entry.parts is not None and flag.after is not None and _waits_to_be_on(entry, flag.after):
            flag.reason = f"Stays off in {target.environment}."
    return flag


def _waits_to_be_on(entry: Entry, after: Document) -> bool:
    """Whether a promotion leaves a flag off that is on in the source."""
    return entry.enabled is None and not after["enabled"]


def _find_name_issues(entry: Entry, target: Target | None = None) -> Iterator[Issue]:
    path, name = f"{entry.path}.name", entry.name
    if problem := find_name_problem(name):
        yield Issue(IssueKind.VALUE, path, f'"{name[:120]}": {problem}', name)
    elif target and (problem := find_pattern_problem(name, target.project)):
        yield Issue(IssueKind.PATTERN, path, problem, name, name)


def _limit_issues(plan: Plan, target: Target) -> Iterator[Issue]:
    new = sum(not flag.after["archived"] for flag in plan.with_action(Action.CREATE) if flag.after)
    if not new:
        return
    total, in_project = fetch_row(
        "SELECT count(*), count(*) FILTER (WHERE project_id = %s) FROM projects_flag WHERE archived_at IS NULL",
        [target.project.id],
    )
    limit = target.project.flag_limit
    if limit is not None and in_project + new > limit:
        yield Issue(
            IssueKind.FLAG_LIMIT,
            "data.features",
            f"We detected you want to create {new} new features to a project that already has {in_project} existing "
            f"features, exceeding the maximum limit of {limit}.",
        )
    if total + new > target.limits.flags:
        message = (
            f"{new} new flags would make {total + new} in all; at most {target.limits.flags} are allowed"
        )
        yield Issue(IssueKind.VALUE, "data.features", message)


def _list_notes(plan: Plan, entries: Entries) -> Iterator[str]:
    if plan.target is not None and plan.target.is_off:
        yield f"Environment {plan.environment} is switched off: new projects do not get it."
    yield from list_missing_variants(plan)
    yield from _list_unknown_types(plan)
    for flag in plan.flags.values():
        entry = entries.flags[flag.name]
        if flag.after is None:
            continue
        strategies = (flag.before or {}).get("strategies", ()) if entry.feature is None else ()
        if len(flag.after["strategies"]) > len(entry.strategies) + len(strategies):
            plan.defaulted.append(flag.name)
        if flag.action is Action.CREATE and flag.has_stage_of_archived:
            yield f"{flag.name}: {entry.path}.lifecycle is not imported because the file does not archive the flag"
        if entry.feature is None:
            yield f"{flag.name} is not in data.features: the file adds to the flag instead of overwriting it."


def _list_unknown_types(plan: Plan) -> Iterator[str]:
    """Types that flags would get and that forms do not offer: mostly misspelled ones."""
    known = list(FlagType.objects.order_by("id").values_list("id", flat=True))
    flags: dict[str, list[str]] = {}
    for flag in plan.flags.values():
        kind = flag.after and flag.after["type"]
        if kind and kind not in known and (flag.before or {}).get("type") != kind:
            flags.setdefault(kind, []).append(flag.name)
    for kind, names in sorted(flags.items()):
        yield f"Flag type {kind} of {list_some(names, 3)} is unknown here, and is kept. Known: {', '.join(known)}."


def _refuse_flags_with_issues(plan: Plan) -> None:
    reasons: dict[str, str] = {}
    for issue in plan.issues:
        for name in (issue.flag, *issue.users):
            if name is not None:
                reasons.setdefault(name, f"{issue.path}: {issue.message}")
    for name, reason in reasons.items():
        if flag := plan.flags.get(name):
            flag.action, flag.reason = Action.REFUSE, reason

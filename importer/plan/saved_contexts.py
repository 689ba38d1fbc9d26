"""Plans the saved contexts of a file. Exports include them on request; see docs/saved-contexts.md.

Their expectations apply, like the rest of a file, to one environment: the import's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.errors import NoAccess, Problem
from groups.access import Caller
from importer.plan.import_plan import Action, Plan, SavedContextPlan
from importer.plan.target import Issue, IssueKind, Target
from playground.models import SavedContext
from playground.saved_contexts.enforcement import enforce
from playground.saved_contexts.rules import (
    MAX_EXPECTATIONS,
    MAX_IN_A_PROJECT,
    Known,
    expectation_problems,
    make_expectation_documents,
    saved_context_problems,
)
from projects.models import Environment, Flag

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
    plan.issues += _limit_issues(plan.saved_contexts.values())


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


def _limit_issues(plans: Iterable[SavedContextPlan]) -> Iterator[Issue]:
    new = [planned.project for planned in plans if planned.action is Action.CREATE]
    for project in dict.fromkeys(new):
        stored = SavedContext.objects.filter(project=project).count()
        if stored + new.count(project) > MAX_IN_A_PROJECT:
            where = f"project {project}" if project else "no project"
            message = f"there would be more than {MAX_IN_A_PROJECT:,} saved contexts of {where}"
            yield Issue(IssueKind.VALUE, "data.savedContexts", message)

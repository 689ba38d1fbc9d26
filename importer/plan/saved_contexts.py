"""Plans the saved contexts of a file. Exports have them only where they are asked for; see docs/saved-contexts.md.

What they expect is, like the rest of a file, of one environment: that of the import.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flagadmin.core.errors import NoAccess, Problem
from groups.access import Caller
from importer.plan.import_plan import Action, Plan, SavedContextPlan
from importer.plan.issues import Issue, IssueKind
from importer.plan.target import Target
from playground.models import SavedContext
from playground.saved_contexts.enforcement import enforce
from playground.saved_contexts.rules import (
    MAX_EXPECTATIONS,
    MAX_IN_A_PROJECT,
    Known,
    expectation_documents,
    expectation_problems,
    saved_context_problems,
)
from projects.models import Environment, Flag

Document = dict[str, Any]
NOTHING: Document = {"context": {}, "note": "", "expectations": []}


@dataclass(frozen=True, slots=True)
class _Around:
    """What the entries are compared with. ``flags`` are those that the file is about."""

    target: Target
    stored: Mapping[str, SavedContext]
    flags: frozenset[str]
    known: Known


def plan_saved_contexts(plan: Plan, listed: Sequence[Any], target: Target, caller: Caller) -> None:
    """Adds the plans of these entries, and their issues. Four statements; none without entries."""
    if not listed:
        return
    names = [given["name"].strip() for given in listed]
    stored = {saved.name: saved for saved in SavedContext.objects.filter(name__in=names)}
    around = _Around(target, stored, frozenset(plan.flags), _known(plan, listed, caller))
    for index, (name, given) in enumerate(zip(names, listed, strict=True)):
        path = f"data.savedContexts[{index}]"
        found = _planned(name, given, around)
        problems = [] if name not in plan.saved_contexts else [Problem("name", "is listed more than once")]
        problems += _problems(found, given, around, caller)
        plan.issues += [
            Issue(IssueKind.VALUE, f"{path}.{problem.path}", f"saved context {name[:120]}: {problem.message}")
            for problem in problems
        ]
        plan.saved_contexts[name] = found
    plan.issues += _limit_issues(plan.saved_contexts.values(), target)


def _known(plan: Plan, listed: Iterable[Any], caller: Caller) -> Known:
    """The flags that there are after the import."""
    named = {one["flag"] for given in listed for one in given.get("expectations", ())}
    flags = Flag.objects.active().readable_by(caller).filter(name__in=named)
    projects: dict[str, str] = dict(flags.values_list("name", "project_id"))
    for name in named & plan.flags.keys():
        after = plan.flags[name].after
        if after is not None and not after["archived"]:
            projects[name] = plan.project
        elif after is not None:
            projects.pop(name, None)
    return Known(projects, set(Environment.objects.values_list("name", flat=True)))


def _planned(name: str, given: Any, around: _Around) -> SavedContextPlan:
    saved = around.stored.get(name)
    before = {key: getattr(saved, key) for key in NOTHING} if saved else None
    after = {
        "context": given["context"],
        "note": (given.get("note") or "").strip(),
        "expectations": list(_expectations(given, before or NOTHING, around)),
    }
    if saved is not None:
        project = saved.project_id
    else:
        project = around.target.project.id if given.get("project") else None
    enforced_in = saved.enforced_in if saved else {}
    return SavedContextPlan(name, project, Action.CREATE, before, after, enforced_in)


def _given_expectations(given: Any, environment: str) -> list[Document]:
    return expectation_documents(
        [one | {"environment": environment} for one in given.get("expectations", ())]
    )


def _expectations(given: Any, before: Document, around: _Around) -> Iterator[Document]:
    """Those of other environments and other flags stay as they are."""
    environment = around.target.environment
    listed = {one["flag"]: one for one in _given_expectations(given, environment)}
    for one in before["expectations"]:
        if one["environment"] != environment or one["flag"] not in around.flags | listed.keys():
            yield one
        elif one["flag"] in listed:
            yield listed.pop(one["flag"])
    yield from listed.values()


def _problems(found: SavedContextPlan, given: Any, around: _Around, caller: Caller) -> Iterator[Problem]:
    """Normalizes the context; then says whether the plan changes anything, and which projects enforce it."""
    if found.project not in (None, around.target.project.id):
        yield Problem("name", "belongs to another project")
        return
    saved = SavedContext(name=found.name, context=found.after["context"], note=found.after["note"])
    yield from saved_context_problems(saved)
    found.after["context"] = saved.context
    expectations = _given_expectations(given, around.target.environment)
    stored = found.before["expectations"] if found.before else ()
    yield from expectation_problems(expectations, stored=stored, project=found.project, known=around.known)
    if len(expectations) <= MAX_EXPECTATIONS < len(found.after["expectations"]):
        yield Problem("expectations", f"would be more than {MAX_EXPECTATIONS} with those of other flags")
    if found.before is not None:
        found.action = Action.SAME if found.before == found.after else Action.CHANGE
    if found.action is not Action.SAME:
        yield from _enforcement_problems(found, around, caller)


def _enforcement_problems(found: SavedContextPlan, around: _Around, caller: Caller) -> Iterator[Problem]:
    """A problem if the caller may not say what is expected. Plans which projects enforce it."""
    saved = SavedContext(
        project_id=found.project,
        context=found.after["context"],
        expectations=found.after["expectations"],
        enforced_in=found.enforced_in,
    )
    try:
        enforce(saved, caller, before=found.before, projects=around.known.flags)
    except NoAccess as error:
        yield Problem("expectations", error.message)
    found.enforced_in = saved.enforced_in


def _limit_issues(plans: Iterable[SavedContextPlan], target: Target) -> Iterator[Issue]:
    new = [found.project for found in plans if found.action is Action.CREATE]
    for project in dict.fromkeys(new):
        stored = SavedContext.objects.filter(project=project).count()
        if stored + new.count(project) > MAX_IN_A_PROJECT:
            where = f"project {project}" if project else "no project"
            message = f"there would be more than {MAX_IN_A_PROJECT:,} saved contexts of {where}"
            yield Issue(IssueKind.VALUE, "data.savedContexts", message)

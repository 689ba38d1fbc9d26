"""The effects of an import: the flags afterwards, users whose results change, and affected expectations.

Offers pending imports to the playground as states to compare."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from rest_framework import serializers

from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound, Problem
from groups.access import Caller
from importer.bulk_work import bulk_work, run_isolated
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.plan.import_plan import Action, FlagPlan, Plan, SavedContextPlan
from importer.runs import access_run, find_visible_runs, load_body
from playground.comparison.contexts import generate_contexts
from playground.comparison.documents import EXAMPLES, make_comparison_document
from playground.comparison.given_contexts import GivenContexts
from playground.comparison.request import Answer
from playground.comparison.states import Body, Choice, Scope, State, StateKind, StatePair, Stored, StoredFlags
from playground.comparison.who_changes import (
    Budget,
    WhoChanges,
    choose_number_of_users,
    choose_users,
    find_differing,
)
from playground.engine.context import Context
from playground.engine.definitions import FlagDefinition
from playground.engine.snapshot import Snapshot
from playground.models import SavedContext
from playground.saved_contexts.checks import choose_expectations, make_changes_document
from playground.saved_contexts.effects import find_changed_expectations
from playground.saved_contexts.expectations import (
    ChangedExpectation,
    Checked,
    Expectation,
    check_against,
    check_expectations,
    list_expectations,
)
from projects.definitions import Definitions, find_used_segments
from projects.models import Segment
from projects.revision import read_revisions


@dataclass(frozen=True)
class ImportState(State):
    """The state of the environment after an import.

    ``names`` are the ``project``'s flags that would differ, ``definitions`` the existing ones among them, with their
    segments.
    """

    project: str
    names: frozenset[str]
    definitions: Definitions
    warnings: Sequence[str] = ()

    def notes(self) -> Sequence[str]:
        return self.warnings

    def problems(self, path: str, scope: Scope) -> Iterator[Problem]:
        if self.project not in scope.projects:
            message = f"is into project {self.project}, which is not among the projects"
            yield Problem(f"{path}.import", message)

    def compile(self, stored: StoredFlags) -> Snapshot:
        stored_ids = {segment.id for segment in stored.snapshot.segments}
        new = {
            key: segment for key, segment in self.definitions.segments.items() if str(key) not in stored_ids
        }
        return stored.replace(self.names, Definitions(self.definitions.flags, new))

    def apply(self, stored: Definitions, names: Collection[str]) -> Definitions:
        flags = [flag for flag in stored.flags if flag["name"] not in self.names]
        flags += self.definitions.select(names).flags
        return Definitions(flags, stored.segments | self.definitions.segments)


class PlannedStates(NamedTuple):
    """The flags of the project now and after an import; ``names`` are those that differ."""

    plan: Plan
    pair: StatePair
    names: list[str]


def plan_states(plan: Plan) -> PlannedStates:
    """The flags that the import changes, and their children, now and afterwards."""
    names, definitions = find_changes(plan)
    after = ImportState(plan.environment, plan.project, frozenset(names), definitions)
    pair = StatePair(read_revisions([plan.project]), Stored(plan.environment), after)
    return PlannedStates(plan, pair, find_differing(*pair.snapshots))


def find_changes(plan: Plan) -> tuple[set[str], Definitions]:
    """The names of the flags that evaluate differently after the import, and their definitions then.

    Strategies get temporary ids, new segments negative ids.
    """
    if plan.target is None or plan.references is None:
        return set(), Definitions([], {})
    changed = [flag for flag in plan.with_action(Action.CREATE, Action.CHANGE) if _answers_otherwise(flag)]
    after = [
        _make_definition(flag, flag.after, plan.target.project.id)
        for flag in sorted(changed, key=lambda flag: flag.name)
        if _is_active(flag.after)
    ]
    return {flag.name for flag in changed}, _add_segments(plan, after)


def _answers_otherwise(flag: FlagPlan) -> bool:
    is_answered = _is_active(flag.before) or _is_active(flag.after)
    return is_answered and flag.differs("archived", "enabled", "variants", "strategies", "parents")


def _is_active(document: Document | None) -> TypeGuard[Document]:
    return document is not None and not document["archived"]


def _make_definition(planned: FlagPlan, after: Document, project: str) -> FlagDefinition:
    return {
        "name": planned.name,
        "project": project,
        "enabled": after["enabled"],
        "impression_data": after["impressionData"],
        "stale": after["stale"],
        "variants": after["variants"],
        "strategies": [
            strategy | {"id": f"planned-{planned.name}-{index}"}
            for index, strategy in enumerate(after["strategies"])
        ],
        "dependencies": after["parents"],
    }


def _add_segments(plan: Plan, flags: list[FlagDefinition]) -> Definitions:
    """These flags with the segments they use: stored ones and new ones of the import."""
    assert plan.references is not None
    new: dict[int, Any] = {segment["id"]: segment for segment in plan.references.new_segments}
    rows = Segment.objects.filter(id__in=find_used_segments(flags) - new.keys())
    stored = {row.id: row.definition for row in rows}
    return Definitions.of(flags, stored | new)


def check_if_imported(plan: Plan, choice: Mapping[str, Any], *, caller: Caller) -> list[Checked]:
    """Checks the expectations after the import, in the given `projects` and `environments`. Raises ValidationError."""
    planned = _make_saved_contexts(plan, lambda planned_context: planned_context.after["expectations"])
    stored = SavedContext.objects.readable_by(caller).exclude(expectations=[]).exclude(name__in=list(planned))
    among = sorted([*stored, *planned.values()], key=lambda saved: saved.name)
    expected = choose_expectations(caller, choice, among=among, planned=_map_projects(plan))
    return _check_after(plan_states(plan), expected, caller)


def find_broken_if_imported(plan: Plan, results: Sequence[Checked], *, caller: Caller) -> list[Checked]:
    """The unmet results of `check_if_imported` that are met now, or that only the file expects."""
    failing = [result for result in results if not result.met]
    now = (
        check_expectations(caller, [result.expectation for result in failing], reasons=False)
        if failing
        else []
    )
    brought = {
        (name, expectation["flag"], expectation["environment"])
        for name, saved in _make_saved_contexts(plan, _list_new_expectations).items()
        for expectation in saved.expectations
    }
    return [
        after
        for before, after in zip(now, failing, strict=True)
        if before.met or (after.expectation.saved.name, *after.expectation.place) in brought
    ]


def find_changed_if_imported(states: PlannedStates, *, caller: Caller) -> list[ChangedExpectation]:
    """The expectations that break or are met again, and unmet ones added by the file."""
    stored = predict_saved_contexts(states.plan)
    changed = find_changed_expectations(caller, *states.pair.snapshots, states.names, instead=stored)
    unmet = find_unmet_of_file(states, caller=caller)
    now = check_expectations(caller, [result.expectation for result in unmet]) if unmet else []
    return changed + [ChangedExpectation(*pair) for pair in zip(now, unmet, strict=True)]


def predict_saved_contexts(plan: Plan) -> dict[str, SavedContext]:
    """The stored saved contexts that the import changes, in their new form, including earlier expectations."""
    contexts = _make_saved_contexts(plan, _list_stored_expectations)
    return {name: saved for name, saved in contexts.items() if saved.pk > 0}


def find_unmet_of_file(states: PlannedStates, *, caller: Caller) -> list[Checked]:
    """The expectations of the project's flags that only the file has and that would not be met."""
    plan = states.plan
    contexts = [
        saved for saved in _make_saved_contexts(plan, _list_new_expectations).values() if saved.expectations
    ]
    if not contexts:
        return []
    expected = list_expectations(
        caller, projects=[plan.project], contexts=contexts, planned=_map_projects(plan)
    )
    return [result for result in _check_after(states, expected, caller) if not result.met]


def _list_stored_expectations(planned: SavedContextPlan) -> list[Document]:
    before = planned.before["expectations"] if planned.before else ()
    return [expectation for expectation in planned.after["expectations"] if expectation in before]


def _list_new_expectations(planned: SavedContextPlan) -> list[Document]:
    before = planned.before["expectations"] if planned.before else ()
    return [expectation for expectation in planned.after["expectations"] if expectation not in before]


def _make_saved_contexts(
    plan: Plan, expectations: Callable[[SavedContextPlan], list[Document]]
) -> dict[str, SavedContext]:
    """The saved contexts of the file in their form after the import, by name. New ones have negative ids."""
    names = list(plan.saved_contexts)
    ids = dict(SavedContext.objects.filter(name__in=names).values_list("name", "pk")) if names else {}
    return {
        name: SavedContext(
            pk=ids.get(name, -1 - index),
            name=name,
            project_id=planned.project,
            context=planned.after["context"],
            note=planned.after["note"],
            enforced_in=planned.enforced_in,
            expectations=expectations(planned),
        )
        for index, (name, planned) in enumerate(plan.saved_contexts.items())
    }


def _map_projects(plan: Plan) -> dict[str, str]:
    """Maps each flag that exists after the import to its project."""
    return {flag.name: plan.project for flag in plan.flags.values() if flag.after is not None}


def _check_after(states: PlannedStates, expectations: Sequence[Expectation], caller: Caller) -> list[Checked]:
    """Checks the import's project and environment with its flags afterwards, other places as stored."""
    plan, after = states.plan, states.pair.after
    touched = [
        expectation.environment == plan.environment
        and (expectation.project == plan.project or expectation.flag in after.positions)
        for expectation in expectations
    ]
    pairs = list(zip(expectations, touched, strict=True))
    inside = check_against(
        [expectation for expectation, is_in in pairs if is_in], {after.environment: after}, now=timezone.now()
    )
    outside = check_expectations(caller, [expectation for expectation, is_in in pairs if not is_in])
    results = {id(result.expectation): result for result in (*inside, *outside)}
    return [results[id(expectation)] for expectation in expectations]


MAX_FLAGS = 1_000
"""Changed flags that are compared, the first by name."""
MAX_GENERATED = 3_000
"""Edge cases of flags without a changed user."""
BUDGET = Budget()
FOR_PAGE = Budget(advice="Choose a flag, or fewer users.")


def compare_plan(states: PlannedStates, *, caller: Caller, flag: str = "") -> WhoChanges:
    """Compares the first changed flags, or one, for as many users as quickly possible. Raises NotFound."""
    if flag and flag not in states.names:
        raise NotFound(f"This import does not change the evaluation of {flag}.")
    pair, compared = states.pair, states.names[:MAX_FLAGS]
    # The same users for one flag as for all.
    users, now = choose_number_of_users(len(compared)), timezone.now()
    contexts = choose_users(caller, pair.read(compared), now=now, users=users)

    def make_rare(names: list[str]) -> Sequence[Context]:
        return generate_contexts(pair.read(names), now=now, limit=MAX_GENERATED)

    return WhoChanges(
        *pair.snapshots,
        contexts,
        [flag] if flag else compared,
        budget=FOR_PAGE,
        total=len(states.names),
        make_rare=make_rare,
    )


def answer_plan(plan: Plan, *, caller: Caller, contexts: Mapping[str, Any], limit: int = EXAMPLES) -> Answer:
    """All changed flags in the format of the playground's comparison. Raises ValidationError if there are too many."""
    states, given_contexts = plan_states(plan), GivenContexts(caller, contexts)
    pair, names = states.pair, states.names
    BUDGET.check_size(len(names), given_contexts.most)
    made_contexts = given_contexts.make(lambda most: pair.read(names[:most]))
    who = WhoChanges(*pair.snapshots, made_contexts, names, budget=BUDGET)
    changed = find_changed_if_imported(states, caller=caller)
    return {
        **make_comparison_document(who, saved=given_contexts.saved, limit=limit),
        "expectations": make_changes_document(changed),
    }


MAX_OFFERED = 20


def _import_choices(caller: Caller) -> list[Choice]:
    """The caller's pending imports, newest first: ``shop / production: export.json, 21 Nov, 14:03 UTC``."""
    runs = find_visible_runs(caller).filter(state=ImportRun.State.PENDING).order_by("-created_at")
    return [
        (
            str(run.id),
            f"{run.project} / {run.environment}: {run.file_name or 'pasted'}, {run.created_at:%d %b, %H:%M} UTC",
        )
        for run in runs[:MAX_OFFERED]
    ]


def _read_import(caller: Caller, body: Body) -> ImportState:
    """Finds the pending import. Raises NotFound, and Conflict if it is no longer pending."""
    run = access_run(caller, body["import"])
    return run_isolated(run.size, read_planned_import, run.id, caller=caller)


@bulk_work
def read_planned_import(run_id: UUID, *, caller: Caller) -> ImportState:
    run = access_run(caller, run_id)
    plan = plan_import(load_body(run), caller=caller)
    names, definitions = find_changes(plan)
    refused = "The import would be refused as it is: its preview says why."
    return ImportState(
        plan.environment,
        plan.project,
        frozenset(names),
        definitions,
        saved_contexts=predict_saved_contexts(plan),
        url=reverse("import-evaluate", args=[run.id]),
        warnings=[] if plan.can_be_applied else [refused],
    )


def _make_field() -> serializers.UUIDField:
    return serializers.UUIDField(
        required=False,
        help_text="The id of an import of your own that is not applied yet: the flags as it would leave them.",
    )


IMPORT = StateKind(
    "import",
    _make_field,
    _read_import,
    names_environment=True,
    title="After an import",
    choices=_import_choices,
)

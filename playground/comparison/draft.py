"""A draft in a request body, interpreted and validated exactly as if it were saved."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from rest_framework import serializers

from flagadmin.core.errors import NotFound, Problem, ValidationError, collect_errors
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller
from playground.comparison.states import Body, Scope, State, StateKind, StoredFlags, find_users
from playground.engine.definitions import (
    ConstraintDefinition,
    DependencyDefinition,
    StrategyDefinition,
    VariantDefinition,
)
from playground.engine.snapshot import Snapshot
from projects.access import find_project_environment
from projects.definitions import Definitions
from projects.drafts import Draft
from projects.flags.archive.actions import check_no_children
from projects.flags.dependencies.actions import make_dependency, parents_problems
from projects.flags.serializers import ParentRecord, VariantBody
from projects.models import Flag, ProjectEnvironment, Segment
from projects.rules import Limits
from projects.serializers import StrictSerializer
from projects.states import has_enabled, turn_on, with_strategies
from projects.strategies.constraint_rules import constraints_problems, make_constraint
from projects.strategies.known_names import read_legal_values
from projects.strategies.planned import check_number_of_strategies, make_added_strategy
from projects.strategies.rules import (
    StrategyDefaults,
    StrategyPlanner,
    make_variants,
    merge_strategy,
    variants_problems,
)
from projects.strategies.serializers import ConstraintBody, StrategyChanges
from projects.strategies.write import read_planned

IN_ENVIRONMENT = {"enabled", "strategies", "variants"}
"""The parts of a flag that belong to an environment, which its project must use."""


class DraftStrategy(StrategyChanges):
    id = serializers.UUIDField(
        required=False,
        help_text="Of a strategy that the flag has there: members not given stay as stored. Without it, a new one.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        if "id" not in attrs and "name" not in attrs:
            required = self.fields["name"].error_messages["required"]
            raise serializers.ValidationError({"name": required})
        return attrs


class DraftSegment(StrictSerializer):
    id = serializers.IntegerField()
    constraints = ConstraintBody(many=True)


class DraftBody(StrictSerializer):
    flag = serializers.CharField(required=False, help_text="The flag that the other members change.")
    enabled = serializers.BooleanField(required=False)
    archived = serializers.BooleanField(required=False)
    strategies = DraftStrategy(many=True, required=False, help_text="All strategies, in order.")
    variants = VariantBody(many=True, required=False, help_text="All variants of the flag.")
    dependencies = ParentRecord(many=True, required=False, help_text="All parents.")
    segments = DraftSegment(many=True, required=False, help_text="Segments with other constraints.")


@dataclass(frozen=True)
class DraftState(State):
    """The state after saving a draft. ``body`` is the draft before it is read."""

    draft: Draft = field(default_factory=Draft)
    body: Mapping[str, Any] | None = None

    def within(self, scope: Scope, path: str) -> State:
        if self.body is None:
            return self
        draft = DraftReader(self.environment, path, scope.projects).read(self.body)
        return DraftState(self.environment, draft)

    def prepare(self, stored: StoredFlags) -> None:
        stored.need(self._find_touched(stored.compile()), self.used_segments)

    def compile(self, stored: StoredFlags) -> Snapshot:
        names, read = self._find_touched(stored.compile()), stored.definitions
        segments = {key: read.segments[key] for key in self.draft.segments if key in read.segments}
        return stored.replace(names, self.draft.apply_to(Definitions(read.select(names).flags, segments)))

    def _find_touched(self, snapshot: Snapshot) -> set[str]:
        """The flags that the draft changes: its own, and those that use its segments."""
        return find_users(snapshot, self.draft.segments) | ({self.draft.flag} if self.draft.flag else set())

    @property
    def used_segments(self) -> Collection[int]:
        return tuple(self.draft.used_segments())

    def apply(self, stored: Definitions, names: Collection[str]) -> Definitions:
        return self.draft.apply_to(stored)


class DraftReader:
    """Reads the draft of a state, whose member of the body is `path`, with the functions used for saving.

    Its content must be possible for a user with every permission: readers may try an edit.
    """

    def __init__(self, environment: str, path: str, projects: Mapping[str, int]) -> None:
        self.environment = environment
        self.state = path
        self.path = f"{path}.draft"
        self.projects = projects
        self.limits = Limits.from_settings()
        self.problems: list[Problem] = []
        self.find_planner = cache(StrategyPlanner)

    def read(self, body: Mapping[str, Any]) -> Draft:
        """Reads a draft. Raises ValidationError with everything that would prevent saving it."""
        draft = Draft(segments=self._read_segments(body.get("segments") or []))
        name = body.get("flag")
        if name is not None:
            draft = self._read_flag_part(self._find_flag(name), body, draft)
        elif body.keys() - {"segments"}:
            self.problems.append(Problem(f"{self.path}.flag", "is required: the flag that the draft changes"))
        check_values(self.problems)
        return draft

    def _find_flag(self, name: str) -> Flag:
        rows = Flag.objects.active().filter(name=name, project_id__in=list(self.projects))
        flag = rows.select_related("project").first()
        if flag is None:
            raise ValidationError.at(f"{self.path}.flag", f"flag {name} not found")
        return flag

    def _read_flag_part(self, flag: Flag, body: Mapping[str, Any], draft: Draft) -> Draft:
        changes: dict[str, Any] = {}
        if body.keys() & IN_ENVIRONMENT and (link := self._find_project_environment(flag)):
            changes = self._read_place(flag, link, body)
        if "dependencies" in body:
            changes["dependencies"] = self._read_parents(flag, body["dependencies"])
        if body.get("archived"):
            self._check(f"{self.path}.archived", lambda: check_no_children([flag], "archived"))
        return replace(
            draft,
            flag=flag.name,
            changes=changes,
            archived=body.get("archived", False),
        )

    def _read_place(self, flag: Flag, link: ProjectEnvironment, body: Mapping[str, Any]) -> dict[str, Any]:
        """Off if the flag loses its last enabled strategy, and with the default one if it is turned on without one."""
        [planned] = read_planned([flag], link, self.find_planner(flag.project_id), caller=Caller.system())
        place, old = dict(planned.state), planned.strategies
        if "variants" in body:
            place["variants"] = self._read_variants(body["variants"], place["variants"])
        if "strategies" in body:
            stored = {strategy["id"]: strategy for strategy in old}
            place["strategies"] = list(self._read_strategies(flag, body["strategies"], stored))
        if body.get("enabled"):
            return turn_on(place, self._switch(flag, link, place["strategies"]))
        place["enabled"] = body.get("enabled", place["enabled"])
        return with_strategies(place, place["strategies"]) if "strategies" in body and old else place

    def _find_project_environment(self, flag: Flag) -> ProjectEnvironment | None:
        """The environment, which the project must use."""
        try:
            return find_project_environment(flag.project_id, self.environment)
        except NotFound as error:
            self.problems.append(Problem(f"{self.state}.environment", error.message))
            return None

    def _switch(
        self, flag: Flag, project_environment: ProjectEnvironment, strategies: list[StrategyDefinition]
    ) -> StrategyDefinition:
        """The strategy added by turning the flag on if none of these is enabled."""
        path = f"{self.path}.enabled"
        document, problems = self._plan(flag, make_added_strategy(flag, project_environment), path)
        if not has_enabled(strategies):
            self.problems += (replace(each, path=path) for each in problems)  # not part of the body
            self._check(path, lambda: check_number_of_strategies(flag, self.environment, len(strategies)))
        return document

    def _read_strategies(
        self, flag: Flag, bodies: list[Mapping[str, Any]], stored: Mapping[str, StrategyDefinition]
    ) -> Iterator[StrategyDefinition]:
        path = f"{self.path}.strategies"
        if any("id" not in strategy for strategy in bodies):
            self._check(path, lambda: check_number_of_strategies(flag, self.environment, len(bodies) - 1))
        seen_ids: set[str] = set()
        for index, strategy in enumerate(bodies):
            strategy_path, members = f"{path}[{index}]", dict(strategy)
            identifier = str(members.pop("id", ""))
            if identifier and identifier not in stored:
                message = f"{flag.name} has no strategy {identifier} in {self.environment}"
                self.problems.append(Problem(f"{strategy_path}.id", message))
                continue
            if identifier in seen_ids:
                self.problems.append(
                    Problem(f"{strategy_path}.id", f"strategy {identifier} is listed more than once")
                )
            if identifier:
                seen_ids.add(identifier)
                members = merge_strategy(stored[identifier], members)
            document, problems = self._plan(flag, members, strategy_path, stored.get(identifier))
            self.problems += problems
            yield document | {"id": identifier}

    def _plan(
        self, flag: Flag, members: Mapping[str, Any], path: str, stored: StrategyDefinition | None = None
    ) -> tuple[StrategyDefinition, list[Problem]]:
        defaults = StrategyDefaults(flag.name, flag.project.default_stickiness)
        return self.find_planner(flag.project_id).plan(members, defaults, path, stored)

    def _read_variants(
        self, bodies: list[Mapping[str, Any]], stored: list[VariantDefinition]
    ) -> list[VariantDefinition]:
        self.problems += variants_problems(bodies, f"{self.path}.variants")
        return make_variants(bodies, stored)

    def _read_parents(self, flag: Flag, bodies: list[Mapping[str, Any]]) -> list[DependencyDefinition]:
        among = Flag.objects.filter(project_id__in=list(self.projects))
        names = [parent["feature"] for parent in bodies]
        self.problems += parents_problems(flag, names, among, f"{self.path}.dependencies")
        return [make_dependency(parent) for parent in bodies]

    def _read_segments(self, bodies: list[Mapping[str, Any]]) -> dict[int, list[ConstraintDefinition]]:
        ids = [segment["id"] for segment in bodies]
        usable = Segment.objects.usable_in(*self.projects)
        rows = dict(usable.filter(id__in=ids).values_list("id", "project_id"))
        constraints_by_id: dict[int, list[ConstraintDefinition]] = {}
        for index, segment in enumerate(bodies):
            path, key = f"{self.path}.segments[{index}]", segment["id"]
            if key not in rows:
                self.problems.append(Problem(f"{path}.id", f"segment {key} not found"))
                continue
            if key in constraints_by_id:
                self.problems.append(Problem(f"{path}.id", f"segment {key} is listed more than once"))
            constraints = [make_constraint(constraint) for constraint in segment["constraints"]]
            self.problems += constraints_problems(
                constraints,
                f"{path}.constraints",
                legal_values=read_legal_values(rows[key]),
                limits=self.limits,
            )
            constraints_by_id[key] = constraints
        return constraints_by_id

    def _check(self, path: str, check: Callable[[], object]) -> None:
        """Collects the error that a check raises."""
        self.problems += (Problem(path, error.message) for error in collect_errors(check))


def _make_field() -> DraftBody:
    return DraftBody(required=False, help_text="An edit that is not saved. Members not given stay as stored.")


def _read_draft(caller: Caller, body: Body) -> State:
    return DraftState(body["environment"], body=body["draft"])


DRAFT = StateKind(
    "draft", _make_field, _read_draft, not_beside={"at": "cannot be saved in the past: leave out at"}
)

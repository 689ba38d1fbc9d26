"""The body of a comparison: two states, the flags, and the contexts to compare them for."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q
from rest_framework import serializers

from flagadmin.errors import Conflict, NotFound, Problem, ValidationError, check_problems
from flagadmin.http.fields import ListOf
from groups.access import Caller
from playground.comparison.given_contexts import ContextsBody
from playground.comparison.past import Moment
from playground.comparison.planned import PlannedImport, planned_import
from playground.comparison.states import State
from playground.request import FUTURE
from projects.drafts import Draft
from projects.flags.dependencies import parents_problems
from projects.flags.dependency_rules import dependency_document
from projects.flags.serializers import ParentRecord, VariantBody
from projects.history.past import is_in_future
from projects.limits import Limits
from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Segment, Strategy
from projects.serializers import StrictSerializer
from projects.strategies.constraint_rules import constraint_document, constraints_problems
from projects.strategies.constraint_serializers import ConstraintBody
from projects.strategies.known_names import legal_values, load_known_names
from projects.strategies.rules import (
    StrategyDefaults,
    default_strategy_document,
    strategy_document,
    strategy_problems,
)
from projects.strategies.serializers import StrategyBody
from projects.strategies.variant_rules import variants_document, variants_problems

MOST_EXAMPLES = 1_000


class DraftStrategy(StrategyBody):
    id = serializers.UUIDField(required=False, help_text="Of a strategy that the flag has there.")


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


class StateBody(StrictSerializer):
    environment = serializers.CharField(required=False, help_text="Required, except with `import`.")
    at = serializers.DateTimeField(
        required=False, help_text="A moment in the past. Without an offset, it is in UTC."
    )
    draft = DraftBody(
        required=False, help_text="An edit that is not saved. Members not given stay as stored."
    )

    def get_fields(self) -> dict[str, serializers.Field]:
        planned = serializers.UUIDField(
            required=False,
            help_text="The id of an import of your own that is not applied yet: the flags as it would leave them.",
        )
        return {**super().get_fields(), "import": planned}  # a keyword cannot be an attribute

    def validate_at(self, at: datetime) -> datetime:
        if is_in_future(at):
            raise serializers.ValidationError(FUTURE)
        return at

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "at" in attrs and "draft" in attrs:
            raise serializers.ValidationError({"draft": "cannot be saved in the past: leave out at"})
        if "import" not in attrs:
            if "environment" not in attrs:
                required = self.fields["environment"].error_messages["required"]
                raise serializers.ValidationError({"environment": required})
            return attrs
        others = [name for name in ("environment", "at", "draft") if name in attrs]
        if others:
            raise serializers.ValidationError(dict.fromkeys(others, "must be left out with import"))
        return attrs


class CompareBody(StrictSerializer):
    to = StateBody()
    projects = ListOf(child=serializers.CharField(), required=False, allow_null=True)
    flag = serializers.CharField(required=False, help_text="Only this flag; without it, all of the projects.")
    contexts = ContextsBody()
    limit = serializers.IntegerField(
        required=False, min_value=0, max_value=MOST_EXAMPLES, help_text="Examples in the answer; default 20."
    )

    def get_fields(self) -> dict[str, serializers.Field]:
        return {"from": StateBody(), **super().get_fields()}  # a keyword cannot be an attribute


def read_planned(caller: Caller, body: Mapping[str, Any]) -> dict[str, PlannedImport]:
    """The imports that the states of a body name, by place. Raises ValidationError for one that is not pending."""
    found = {}
    for place in ("from", "to"):
        if "import" in body[place]:
            try:
                found[place] = planned_import(caller, body[place]["import"])
            except (NotFound, Conflict) as error:
                raise ValidationError.at(f"{place}.import", error.message) from None
    return found


def check_planned(planned: Mapping[str, PlannedImport], projects: Mapping[str, int]) -> None:
    """Raises ValidationError if the project of an import is not among those that are compared."""
    check_problems(
        Problem(f"{place}.import", f"is into project {found.project}, which is not among the projects")
        for place, found in planned.items()
        if found.project not in projects
    )


def read_state(
    given: Mapping[str, Any],
    path: str,
    projects: Mapping[str, int],
    at: Moment | None = None,
    planned: PlannedImport | None = None,
) -> State:
    """A state of flags in these projects. Raises ValidationError with every problem of its draft."""
    if planned is not None:
        return State(planned.environment, planned=planned)
    environment, draft = given["environment"], given.get("draft")
    if draft is None:
        return State(environment, at=at)
    return State(environment, _DraftReader(environment, f"{path}.draft", projects).read(draft))


class _DraftReader:
    """Reads a draft as the actions would store it."""

    def __init__(self, environment: str, path: str, projects: Mapping[str, int]) -> None:
        self.environment = environment
        self.path = path
        self.projects = projects
        self.limits = Limits.from_settings()
        self.problems: list[Problem] = []

    def read(self, given: Mapping[str, Any]) -> Draft:
        draft = Draft(segments=self._segments(given.get("segments") or []))
        name = given.get("flag")
        if name is not None:
            draft = replace(draft, **self._flag(name, given))
        elif given.keys() - {"segments"}:
            self.problems.append(Problem(f"{self.path}.flag", "is required: the flag that the draft changes"))
        check_problems(self.problems)
        return draft

    def _flag(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        rows = Flag.objects.filter(name=name, archived_at=None, project_id__in=list(self.projects))
        flag = rows.select_related("project").first()
        if flag is None:
            raise ValidationError.at(f"{self.path}.flag", f"flag {name} not found")
        changes: dict[str, Any] = {}
        if "enabled" in given:
            changes["enabled"] = given["enabled"]
        if "strategies" in given:
            changes["strategies"] = list(self._strategies(flag, given["strategies"]))
        if "variants" in given:
            changes["variants"] = self._variants(flag, given["variants"])
        if "dependencies" in given:
            changes["dependencies"] = self._parents(flag, given["dependencies"])
        place = ProjectEnvironment.objects.filter(project=flag.project, environment=self.environment).first()
        return {
            "flag": name,
            "changes": changes,
            "archived": given.get("archived", False),
            "default_strategy": default_strategy_document(
                place.default_strategy if place else None, _defaults(flag)
            ),
        }

    def _parents(self, flag: Flag, given: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
        among = Flag.objects.filter(project_id__in=list(self.projects))
        names = [parent["feature"] for parent in given]
        self.problems += parents_problems(flag, names, among, f"{self.path}.dependencies")
        return [dependency_document(parent) for parent in given]

    def _strategies(self, flag: Flag, given: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        path = f"{self.path}.strategies"
        if len(given) > self.limits.strategies:
            message = f"must have at most {self.limits.strategies} strategies, not {len(given)}"
            self.problems.append(Problem(path, message))
        rows = Strategy.objects.filter(flag=flag, environment_id=self.environment)
        stored = dict(rows.values_list("id", "variants"))
        known_names = load_known_names(flag.project_id)
        for index, strategy in enumerate(given):
            place, identifier = f"{path}[{index}]", strategy.get("id")
            if identifier is not None and identifier not in stored:
                message = f"{flag.name} has no strategy {identifier} in {self.environment}"
                self.problems.append(Problem(f"{place}.id", message))
            document = strategy_document(
                strategy, _defaults(flag), stored_variants=stored.get(identifier, ()) if identifier else ()
            )
            self.problems += strategy_problems(
                document,
                place,
                known_names=known_names,
                limits=self.limits,
                given_variants=strategy.get("variants") or [],
            )
            yield document | {"id": str(identifier or "")}

    def _variants(self, flag: Flag, given: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
        self.problems += variants_problems(given, f"{self.path}.variants")
        rows = FlagEnvironment.objects.filter(flag=flag, environment_id=self.environment)
        return variants_document(given, rows.values_list("variants", flat=True).first() or [])

    def _segments(self, given: list[Mapping[str, Any]]) -> dict[int, list[dict[str, Any]]]:
        ids = [segment["id"] for segment in given]
        readable = Q(project=None) | Q(project_id__in=list(self.projects))
        rows = dict(Segment.objects.filter(readable, id__in=ids).values_list("id", "project_id"))
        found = {}
        for index, segment in enumerate(given):
            path, key = f"{self.path}.segments[{index}]", segment["id"]
            if key not in rows:
                self.problems.append(Problem(f"{path}.id", f"segment {key} not found"))
                continue
            constraints = [constraint_document(constraint) for constraint in segment["constraints"]]
            self.problems += constraints_problems(
                constraints, f"{path}.constraints", legal_values=legal_values(rows[key]), limits=self.limits
            )
            found[key] = constraints
        return found


def _defaults(flag: Flag) -> StrategyDefaults:
    return StrategyDefaults(flag=flag.name, stickiness=flag.project.default_stickiness)

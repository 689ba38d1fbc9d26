"""The body of a comparison: two states, the flags, and the contexts to compare them for."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework import serializers

from flagadmin.core.errors import Conflict, NotFound, Problem, ValidationError, check_problems
from flagadmin.core.http.fields import ListOf
from groups.access import Caller
from playground.comparison.draft import DraftBody, DraftReader
from playground.comparison.given_contexts import ContextsBody
from playground.comparison.past import Moment
from playground.comparison.planned import PlannedImport, planned_import
from playground.comparison.states import State
from playground.request import FUTURE
from projects.history.past import is_in_future
from projects.serializers import StrictSerializer

MAX_EXAMPLES = 1_000


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
        required=False, min_value=0, max_value=MAX_EXAMPLES, help_text="Examples in the answer; default 20."
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
    return State(environment, DraftReader(environment, path, projects).read(draft))

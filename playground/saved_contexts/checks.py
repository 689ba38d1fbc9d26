"""Requests to check expectations: which, and against what."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from flagadmin.core.errors import check_problems
from groups.access import Caller
from playground.comparison.kinds import read_state
from playground.comparison.states import Scope, compile_states
from playground.models import SavedContext
from playground.queries import find_project_problems
from playground.saved_contexts.expectations import (
    Checked,
    Expectation,
    check_against,
    check_expectations,
    check_number,
    list_expectations,
)
from playground.saved_contexts.queries import get_named_contexts
from projects.access import environment_problems
from projects.revision import read_revisions, read_revisions_and_environments


def choose_expectations(
    caller: Caller,
    body: Mapping[str, Any],
    *,
    among: Sequence[SavedContext] | None = None,
    planned: Mapping[str, str] | None = None,
) -> list[Expectation]:
    """Chooses the expectations of the `projects`, `environments` (that of `asIf`, if given) and `contexts` given.

    Optionally `among` what these saved contexts expect, also of `planned` flags, which do not exist yet: their
    projects by name. Raises ValidationError for unknown ones.
    """
    projects, environments = body.get("projects"), body.get("environments")
    current, known = read_revisions_and_environments(
        caller.readable_projects if projects is None else projects
    )
    places = {f"environments[{index}]": name for index, name in enumerate(environments or ())}
    if state := body.get("asIf"):
        environments = [state["environment"]]
        places = {"asIf.environment": state["environment"]}
    check_problems([*find_project_problems(caller, projects, current), *environment_problems(places, known)])
    contexts = get_named_contexts(caller, body["contexts"], "contexts") if "contexts" in body else among
    return list_expectations(
        caller, projects=projects, environments=environments, contexts=contexts, planned=planned
    )


def check_request(caller: Caller, body: Mapping[str, Any]) -> list[Checked]:
    """The expectations that a validated body asks for. Raises ValidationError."""
    state = body.get("asIf")
    if state is None:
        return check_expectations(caller, choose_expectations(caller, body))
    expectations = choose_expectations(caller, body)
    check_number(expectations)
    current = read_revisions(caller.readable_projects)
    as_if = read_state(caller, state, "asIf").within(Scope(current), "asIf")
    [snapshot] = compile_states(current, [as_if])
    return check_against(expectations, {snapshot.environment: snapshot}, now=timezone.now())

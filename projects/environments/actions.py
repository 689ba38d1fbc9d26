"""Creates, changes, sorts and deletes environments.

Environments belong to the whole installation, so only admins may change them.

Validates an environment's name and type.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from flagadmin.core.audit.record import Event, EventType, record, record_all, record_change
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Conflict, NotFound, Problem, ValidationError, check_problems, choices
from groups.access import Caller, Permission
from groups.models import ApiToken
from projects.access import access_environment, describe_unknown_environment
from projects.definitions import read_all_definitions
from projects.deletion.kept_names import ENVIRONMENT, end_names
from projects.flags.archive.actions import remove_rows
from projects.models import Environment, FlagEnvironment, ProjectEnvironment, Strategy
from projects.project_scope import name_is_free
from projects.projects.queries import make_environment_document
from projects.rules import name_problems
from projects.strategies.rules import MAX_TYPE_LENGTH
from projects.tokens.pending import activate_tokens


@transactional
def create_environment(values: Mapping[str, Any], *, caller: Caller) -> Environment:
    """Creates an environment from ``values`` by model field. Raises ValidationError, NameExists, NoAccess."""
    caller.check(Permission.ADMIN)
    environment = Environment(**values)
    check_environment_values(environment)
    with name_is_free(f"An environment named {environment.name} already exists."):
        environment.save(force_insert=True)
    event = _make_event(
        EventType.ENVIRONMENT_CREATED, environment, after=make_environment_document(environment)
    )
    record(event, actor=caller)
    activate_tokens(caller=caller)
    return environment


@transactional
def update_environment(
    name: str, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> Environment:
    """Updates the given model fields. The name cannot be changed.

    Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    environment = access_environment_for_update(caller, name)
    before = make_environment_document(environment)
    check_expected(expected, before)
    for key, value in changes.items():
        setattr(environment, key, value)
    check_environment_values(environment)
    environment.save()
    after = make_environment_document(environment)
    event = _make_event(EventType.ENVIRONMENT_UPDATED, environment, before=before, after=after)
    record_change(event, actor=caller)
    return environment


@transactional
def sort_environments(orders: Mapping[str, int], *, caller: Caller) -> None:
    """Sets the sort order of environments: ``{name: order}``.

    Raises NoAccess, and ValidationError naming unknown environments.
    """
    caller.check(Permission.ADMIN)
    rows = Environment.objects.select_for_update(no_key=True).filter(name__in=list(orders)).order_by("name")
    environments = {environment.name: environment for environment in rows}
    if unknown := [name for name in orders if name not in environments]:
        raise ValidationError.of(Problem(name, describe_unknown_environment(name)) for name in unknown)
    events = []
    for name, environment in environments.items():
        before = make_environment_document(environment)
        environment.sort_order = orders[name]
        after = make_environment_document(environment)
        if after != before:
            events.append(_make_event(EventType.ENVIRONMENT_UPDATED, environment, before=before, after=after))
    Environment.objects.bulk_update(environments.values(), ["sort_order"])
    record_all(events, actor=caller)


@transactional
def delete_environment(name: str, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes an environment, and the settings there of flags whose project no longer uses it.

    Raises NotFound, NoAccess, EditConflict, and Conflict naming the projects or tokens that still use it.
    """
    environment = access_environment_for_update(caller, name)
    before = make_environment_document(environment)
    check_expected(expected, before)
    check_environment_is_unused(environment)
    event = _make_event(EventType.ENVIRONMENT_DELETED, environment, before=before)
    earlier = {"flags": _read_configured(name)}
    remove_rows(Strategy.objects.filter(environment=environment))
    remove_rows(FlagEnvironment.objects.filter(environment=environment))
    environment.delete()
    record(replace(event, earlier=earlier), actor=caller)
    end_names(ENVIRONMENT, [name], caller=caller)


def _read_configured(environment: str) -> dict[str, Any]:
    """Reads the settings of flags in an environment, by name, without those that have none."""
    return {
        flag["name"]: {
            "enabled": flag["enabled"],
            "variants": flag["variants"],
            "strategies": flag["strategies"],
        }
        for flag in read_all_definitions(environment).flags
        if flag["enabled"] or flag["variants"] or flag["strategies"]
    }


def check_environment_is_unused(environment: Environment) -> None:
    """Raises Conflict if a project or an API token uses the environment."""
    used_by = ProjectEnvironment.objects.filter(environment=environment).values_list("project_id", flat=True)
    tokens = ApiToken.objects.filter(environment=environment).values_list("name", flat=True)
    if projects := set(used_by):
        raise Conflict(
            f"Environment {environment.name} is in use in {len(projects)} projects: {choices(projects)}. "
            "Remove it from them first."
        )
    if names := list(tokens):
        raise Conflict(
            f"Environment {environment.name} is in use by {len(names)} API tokens: {choices(names)}. "
            "Delete them first."
        )


def access_environment_for_update(caller: Caller, name: str) -> Environment:
    """The environment, locked. Raises NotFound, NoAccess."""
    access_environment(name)
    caller.check(Permission.ADMIN)
    environment = Environment.objects.select_for_update().filter(name=name).first()
    if environment is None:
        raise NotFound(describe_unknown_environment(name))
    return environment


def check_environment_values(environment: Environment) -> None:
    """Raises ValidationError listing every problem."""
    check_problems(environment_problems(environment))


def _make_event(kind: EventType, environment: Environment, *, before: Any = None, after: Any = None) -> Event:
    name = environment.name
    return Event(type=kind, environment=name, subject=name, before=before, after=after)


# Used in place of a name in URLs below /api/admin/environments/.
RESERVED_ENVIRONMENTS = frozenset({"project", "sort-order", "update", "validate"})


def environment_problems(environment: Environment) -> Iterator[Problem]:
    # An environment of an earlier version may have such a name, and can be edited.
    reserved = RESERVED_ENVIRONMENTS if environment._state.adding else ()
    yield from name_problems(environment.name, reserved=reserved)
    if not 1 <= len(environment.type) <= MAX_TYPE_LENGTH:
        yield Problem("type", f"must have 1 to {MAX_TYPE_LENGTH} characters")

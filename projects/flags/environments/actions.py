"""Turns flags on and off in an environment, and sets their variants there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller, Permission
from playground.engine.definitions import VariantDefinition
from projects.access import access_flag_for_update, access_flags_for_update, environment_problems
from projects.models import Flag, FlagEnvironment, ProjectEnvironment
from projects.strategies.planned import PlannedFlag
from projects.strategies.rules import variants_problems
from projects.strategies.write import change_flag, change_flags

SWITCH, SET_VARIANTS = Permission.UPDATE_FEATURE_ENVIRONMENT, Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS
Variants = Sequence[Mapping[str, Any]]


def enable_flag(
    project_id: str, name: str, environment: str, *, activate_disabled: bool = False, caller: Caller
) -> bool:
    """Turns the flag on in an environment. Returns whether it was off.

    If the flag has no enabled strategy, it gets the project environment's default strategy, or one that is on
    for everyone. With ``activate_disabled``, its disabled strategies, if any, are enabled instead.

    Raises the errors of `change_flags`, and ValidationError if the default strategy is no longer valid.
    """
    turn = _turn(True, activate_disabled)
    return change_flag(project_id, name, environment, SWITCH, turn, caller=caller).is_switched


def enable_flags(
    project_id: str,
    names: Iterable[str],
    environment: str,
    *,
    activate_disabled: bool = False,
    caller: Caller,
) -> list[Flag]:
    """Turns on flags, all or none of them, and returns those that were off.

    Raises the errors of ``enable_flag``, and InvalidOperation unless all are active flags of the project.
    """
    place, turn = (project_id, names, environment, SWITCH), _turn(True, activate_disabled)
    return _list_switched(change_flags(*place, turn, access=_access_active, caller=caller))


def disable_flag(project_id: str, name: str, environment: str, *, caller: Caller) -> bool:
    """Turns the flag off in an environment. Returns whether it was on. Raises NotFound, NoAccess."""
    return change_flag(project_id, name, environment, SWITCH, _turn(False), caller=caller).is_switched


def disable_flags(project_id: str, names: Iterable[str], environment: str, *, caller: Caller) -> list[Flag]:
    """Turns off flags and returns those that were on.

    Raises NotFound, NoAccess, and InvalidOperation unless all are active flags of the project.
    """
    place = project_id, names, environment, SWITCH
    return _list_switched(change_flags(*place, _turn(False), access=_access_active, caller=caller))


def _turn(enabled: bool, activate_disabled: bool = False) -> Callable[[PlannedFlag], PlannedFlag]:
    def turn(planned: PlannedFlag) -> PlannedFlag:
        planned.switch(enabled, activate_disabled=activate_disabled)
        return planned

    return turn


_access_active = partial(access_flags_for_update, archived=False)


def _list_switched(planned: Iterable[PlannedFlag]) -> list[Flag]:
    return [each.flag for each in planned if each.is_switched]


def set_variants(
    project_id: str,
    name: str,
    environment: str,
    variants: Variants,
    *,
    expected: Expected = None,
    caller: Caller,
) -> list[VariantDefinition]:
    """Replaces the flag's variants in the environment and returns them as stored.

    An empty list removes all variants. Raises EditConflict, and the errors of `change_flags`.
    """
    return edit_variants(
        project_id, name, environment, lambda before: variants, expected=expected, caller=caller
    )


def edit_variants(
    project_id: str,
    name: str,
    environment: str,
    edit: Callable[[list[VariantDefinition]], Variants],
    *,
    expected: Expected = None,
    caller: Caller,
) -> list[VariantDefinition]:
    """Like ``set_variants``, but ``edit`` computes the new list from the one stored for the locked flag."""
    place = project_id, name, environment, SET_VARIANTS
    return change_flag(*place, lambda planned: planned.edit_variants(edit, expected), caller=caller)


@transactional
def set_variants_in(
    project_id: str, name: str, environments: Sequence[str], variants: Variants, *, caller: Caller
) -> list[VariantDefinition]:
    """Replaces the flag's variants in each of these environments, all or none, and returns them as stored.

    Raises NotFound, NoAccess, ValidationError.
    """
    access_flag_for_update(caller, project_id, name, None)
    for environment in environments:
        caller.check(SET_VARIANTS, project=project_id, environment=environment)
    used = ProjectEnvironment.objects.filter(project=project_id).order_by("environment_id")
    places = {f"environments[{index}]": environment for index, environment in enumerate(environments)}
    check_values(
        [
            *environment_problems(places, list(used.values_list("environment_id", flat=True))),
            *variants_problems(variants, "variants"),
        ]
    )
    stored: list[VariantDefinition] = []
    for environment in sorted(set(environments)):
        stored = set_variants(project_id, name, environment, variants, caller=caller)
    return stored


def read_variants(flag: Flag, environment: str) -> list[VariantDefinition]:
    rows = FlagEnvironment.objects.filter(flag=flag, environment_id=environment)
    return rows.values_list("variants", flat=True).first() or []

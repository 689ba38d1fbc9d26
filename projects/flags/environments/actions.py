"""Turns flags on and off in an environment, and sets their variants there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from flagadmin.core.edit_conflicts import Expected
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller, Permission
from playground.engine.definitions import VariantDefinition
from projects.access import access_flag, access_flags_for_update, environment_problems
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


def disable_flag(project_id: str, name: str, environment: str, *, caller: Caller) -> bool:
    """Turns the flag off in an environment. Returns whether it was on. Raises NotFound, NoAccess."""
    return change_flag(project_id, name, environment, SWITCH, _turn(False), caller=caller).is_switched


def switch_flags(
    names: Mapping[str, Iterable[str]],
    environment: str,
    enabled: bool,
    *,
    activate_disabled: bool = False,
    caller: Caller,
) -> list[Flag]:
    """Turns flags on or off, all or none of them. Returns those that were not. ``names`` are by project.

    Raises the errors of ``enable_flag``, and InvalidOperation unless all are active flags of these projects.
    """
    turn, access = _turn(enabled, activate_disabled), partial(access_flags_for_update, archived=False)
    planned = change_flags(names, [environment], SWITCH, turn, access=access, caller=caller)
    return [each.flag for each in planned if each.is_switched]


def _turn(enabled: bool, activate_disabled: bool = False) -> Callable[[PlannedFlag], PlannedFlag]:
    def turn(planned: PlannedFlag) -> PlannedFlag:
        planned.switch(enabled, activate_disabled=activate_disabled)
        return planned

    return turn


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


def set_variants_in(
    project_id: str, name: str, environments: Sequence[str], variants: Variants, *, caller: Caller
) -> list[VariantDefinition]:
    """Replaces the flag's variants in each of these environments, all or none, and returns them as stored.

    Raises NotFound, NoAccess, ValidationError.
    """
    access_flag(caller, project_id, name, archived=False)
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
    chosen, plan = sorted(set(environments)), lambda planned: planned.edit_variants(lambda _: variants)
    stored = change_flags({project_id: [name]}, chosen, SET_VARIANTS, plan, caller=caller)
    return stored[-1] if stored else []


def read_variants(flag: Flag, environment: str) -> list[VariantDefinition]:
    rows = FlagEnvironment.objects.filter(flag=flag, environment_id=environment)
    return rows.values_list("variants", flat=True).first() or []

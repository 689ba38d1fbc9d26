"""Turns flags on and off in an environment, and sets their variants there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Count, Q

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller, Permission
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from projects.access import access_flag_for_update, access_flags_for_update, environment_problems
from projects.drafts import Draft
from projects.flags.environments.toggle import find_project_environment, has_enabled_strategy, set_switch
from projects.flags.queries import read_strategy_documents
from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Strategy
from projects.strategies.actions import insert_strategy
from projects.strategies.check import check_number_of_strategies, check_room_for_strategy, check_strategy
from projects.strategies.rules import StrategyDefaults, make_default_strategy
from projects.strategies.variant_rules import make_variants, variants_problems

Variants = Sequence[Mapping[str, Any]]


@transactional
def enable_flag(
    project_id: str, name: str, environment: str, *, activate_disabled: bool = False, caller: Caller
) -> bool:
    """Turns the flag on in an environment. Returns whether it was off.

    If the flag has no enabled strategy, it gets the project environment's default strategy, or one that is on
    for everyone. With ``activate_disabled``, its disabled strategies, if any, are enabled instead.

    Raises NotFound, NoAccess, and ValidationError if the default strategy is no longer valid or the flag has
    too many strategies.
    """
    flag, project_environment = _access(
        project_id, name, environment, Permission.UPDATE_FEATURE_ENVIRONMENT, caller=caller
    )
    return _enable(flag, project_environment, activate_disabled=activate_disabled, caller=caller)


@transactional
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
    flags, project_environment = _access_many(project_id, names, environment, caller=caller)
    return [
        flag
        for flag in flags
        if _enable(flag, project_environment, activate_disabled=activate_disabled, caller=caller)
    ]


@transactional
def disable_flag(project_id: str, name: str, environment: str, *, caller: Caller) -> bool:
    """Turns the flag off in an environment. Returns whether it was on. Raises NotFound, NoAccess."""
    flag, project_environment = _access(
        project_id, name, environment, Permission.UPDATE_FEATURE_ENVIRONMENT, caller=caller
    )
    return set_switch(flag, project_environment, False, caller=caller)


@transactional
def disable_flags(project_id: str, names: Iterable[str], environment: str, *, caller: Caller) -> list[Flag]:
    """Turns off flags and returns those that were on.

    Raises NotFound, NoAccess, and InvalidOperation unless all are active flags of the project.
    """
    flags, project_environment = _access_many(project_id, names, environment, caller=caller)
    return [flag for flag in flags if set_switch(flag, project_environment, False, caller=caller)]


def make_switch_draft(flag: Flag, project_environment: ProjectEnvironment, enabled: bool) -> Draft:
    """The draft of turning the flag on or off, with a strategy that it may get."""
    return Draft(flag.name, {"enabled": enabled}, plan_added_strategy(flag, project_environment))


def plan_added_strategy(flag: Flag, project_environment: ProjectEnvironment) -> StrategyDefinition:
    """The strategy that a flag without an enabled one gets when it is turned on."""
    defaults = StrategyDefaults(flag.name, project_environment.project.default_stickiness)
    document = make_default_strategy(project_environment.default_strategy, defaults)
    return document | {"sortOrder": None, "disabled": False}


def _check_added_strategy(flag: Flag, project_environment: ProjectEnvironment) -> StrategyDefinition:
    added = plan_added_strategy(flag, project_environment)
    return check_strategy(flag, added, stored=added)  # the environment's own strategy is not a new value


def check_enabling(flags: Sequence[Flag], project_environment: ProjectEnvironment, *, caller: Caller) -> None:
    """Raises the errors of turning these flags on: NoAccess or ValidationError if one needs a strategy and cannot get
    it.

    All flags belong to one project. A few queries for any number of flags.
    """
    environment = project_environment.environment_id
    rows = Strategy.objects.filter(flag__in=flags, environment_id=environment).values("flag_id")
    counted = rows.annotate(number=Count("pk"), enabled=Count("pk", filter=Q(disabled=False)))
    numbers = {row["flag_id"]: row for row in counted}
    enabled = {flag_id for flag_id, row in numbers.items() if row["enabled"]}
    if lacking := [flag for flag in flags if flag.pk not in enabled]:
        caller.check(
            Permission.CREATE_FEATURE_STRATEGY,
            project=project_environment.project_id,
            environment=environment,
        )
        _check_added_strategy(lacking[0], project_environment)
    for flag in lacking:
        number = numbers[flag.pk]["number"] if flag.pk in numbers else 0
        check_number_of_strategies(flag, environment, number)


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

    An empty list removes all variants. Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    return edit_variants(
        project_id, name, environment, lambda before: variants, expected=expected, caller=caller
    )


@transactional
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
    permission = Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS
    flag, _ = _access(project_id, name, environment, permission, caller=caller)
    rows = FlagEnvironment.objects.filter(flag=flag, environment_id=environment)
    row = rows.first() or FlagEnvironment(flag=flag, environment_id=environment)
    check_expected(expected, row.variants)
    variants = edit(row.variants)
    check_values(variants_problems(variants, ""))
    before, row.variants = row.variants, make_variants(variants, row.variants)
    if row.variants != before:
        row.save()
        record(
            Event.of_flag(
                EventType.FEATURE_ENVIRONMENT_VARIANTS_UPDATED,
                flag,
                environment,
                before={"variants": before},
                after={"variants": row.variants},
            ),
            actor=caller,
        )
    return row.variants


@transactional
def set_variants_in(
    project_id: str, name: str, environments: Sequence[str], variants: Variants, *, caller: Caller
) -> list[VariantDefinition]:
    """Replaces the flag's variants in each of these environments, all or none, and returns them as stored.

    Raises NotFound, NoAccess, ValidationError.
    """
    access_flag_for_update(caller, project_id, name, None)
    for environment in environments:
        caller.check(
            Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS, project=project_id, environment=environment
        )
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


def _access(
    project_id: str, name: str, environment: str, permission: Permission, *, caller: Caller
) -> tuple[Flag, ProjectEnvironment]:
    flag = access_flag_for_update(caller, project_id, name, permission, environment=environment)
    return flag, find_project_environment(project_id, environment)


def _access_many(
    project_id: str, names: Iterable[str], environment: str, *, caller: Caller
) -> tuple[list[Flag], ProjectEnvironment]:
    permission = Permission.UPDATE_FEATURE_ENVIRONMENT
    flags = access_flags_for_update(
        caller, project_id, names, permission, environment=environment, archived=False
    )
    return flags, find_project_environment(project_id, environment)


def _enable(
    flag: Flag, project_environment: ProjectEnvironment, *, activate_disabled: bool, caller: Caller
) -> bool:
    environment = project_environment.environment_id
    if not has_enabled_strategy(flag, environment):
        activated = activate_disabled and _activate_strategies(flag, environment, caller=caller)
        if not activated:
            _add_default_strategy(flag, project_environment, caller=caller)
    return set_switch(flag, project_environment, True, caller=caller)


def _add_default_strategy(flag: Flag, project_environment: ProjectEnvironment, *, caller: Caller) -> None:
    environment = project_environment.environment_id
    caller.check(Permission.CREATE_FEATURE_STRATEGY, project=flag.project_id, environment=environment)
    document = _check_added_strategy(flag, project_environment)
    check_room_for_strategy(flag, environment)
    strategy = insert_strategy(flag, environment, document)
    [after] = read_strategy_documents([strategy])
    record(Event.of_flag(EventType.FEATURE_STRATEGY_ADD, flag, environment, after=after), actor=caller)


def _activate_strategies(flag: Flag, environment: str, *, caller: Caller) -> bool:
    """Enables the flag's strategies in the environment, with an event for each. False if it has none."""
    strategies = list(Strategy.objects.filter(flag=flag, environment_id=environment))
    if not strategies:
        return False
    caller.check(Permission.UPDATE_FEATURE_STRATEGY, project=flag.project_id, environment=environment)
    before = read_strategy_documents(strategies)
    Strategy.objects.filter(flag=flag, environment_id=environment).update(disabled=False)
    for document in before:
        record(
            Event.of_flag(
                EventType.FEATURE_STRATEGY_UPDATE,
                flag,
                environment,
                before=document,
                after=document | {"disabled": False},
            ),
            actor=caller,
        )
    return True

"""Turns a flag on or off in an environment.

SDKs treat a flag without strategies as on for everyone. So a flag without an enabled strategy gets one when
it is turned on, and is turned off when it loses its last enabled strategy.
"""

from collections.abc import Collection, Mapping
from typing import Any

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import ValidationError
from flagadmin.core.wording import choices
from groups.access import Caller
from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Strategy


def read_turned(form: Mapping[str, Any]) -> str:
    """Reads ``on`` or ``off`` from a switch. Raises ValidationError: a missing value must not turn a flag off."""
    turned = str(form.get("enabled", ""))
    if turned not in ("on", "off"):
        raise ValidationError.at(
            "enabled", f"must be on or off, not {turned}" if turned else "must be on or off"
        )
    return turned


def find_project_environment(project_id: str, environment: str) -> ProjectEnvironment:
    """The project's link to an environment that it uses. Raises NotFound, ValidationError without a name."""
    if not environment:
        known = ProjectEnvironment.objects.filter(project_id=project_id).order_by("environment")
        names = choices(known.values_list("environment_id", flat=True))
        raise ValidationError(f"The address does not say which environment. Available: {names}.")
    rows = ProjectEnvironment.objects.filter(project_id=project_id, environment_id=environment)
    return get_or_404(
        rows.select_related("project"), f"Project {project_id} has no environment {environment}."
    )


def set_switch(flag: Flag, project_environment: ProjectEnvironment, enabled: bool, *, caller: Caller) -> bool:
    """Turns the flag on or off and records an event; False if nothing changed.

    The caller must have locked the flag and checked the permission.
    """
    rows = FlagEnvironment.objects.filter(flag=flag, environment_id=project_environment.environment_id)
    row = rows.first() or FlagEnvironment(flag=flag, environment_id=project_environment.environment_id)
    if row.enabled == enabled:
        return False
    row.enabled = enabled
    row.save()
    kind = EventType.FEATURE_ENVIRONMENT_ENABLED if enabled else EventType.FEATURE_ENVIRONMENT_DISABLED
    record(Event.of_flag(kind, flag, project_environment.environment_id), actor=caller)
    return True


def keep_off_without_strategies(
    flags: Collection[Flag], project_environment: ProjectEnvironment, *, caller: Caller
) -> None:
    """Turns off the flags without an enabled strategy left in the environment."""
    rows = Strategy.objects.filter(
        flag__in=flags, environment_id=project_environment.environment_id, disabled=False
    )
    with_strategies = set(rows.values_list("flag_id", flat=True))
    for flag in flags:
        if flag.pk not in with_strategies:
            set_switch(flag, project_environment, False, caller=caller)


def has_enabled_strategy(flag: Flag, environment: str) -> bool:
    return Strategy.objects.filter(flag=flag, environment_id=environment, disabled=False).exists()

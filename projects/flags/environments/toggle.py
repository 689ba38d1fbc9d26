"""Reads switches, and finds the environments of a project."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import ValidationError, choices
from projects.models import ProjectEnvironment


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

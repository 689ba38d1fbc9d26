"""Says in which environment approved changes are being made: they pass the gate."""

from flagadmin.core.change_options import get_change_options


def is_applied_to(project_id: str, environment: str) -> bool:
    return find_applied_environment(project_id) == environment


def find_applied_environment(project_id: str) -> str:
    """The environment of the project in which approved changes are being made, "" if it is none."""
    project, environment = get_change_options().approved_in
    return environment if project == project_id else ""

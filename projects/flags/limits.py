"""Limits on the number of flags in a project and in the whole installation."""

from flagadmin.core.errors import InvalidOperation, ValidationError
from projects.limits import Limits
from projects.models import Flag, Project


def check_room(project: Project, more: int) -> None:
    """Checks that ``more`` active flags can be added. Archived flags do not count.

    The caller must have locked the project. Raises InvalidOperation if the project is full, ValidationError
    if the installation is.
    """
    if more <= 0:
        return
    active = Flag.objects.active()
    if project.flag_limit is not None:
        number = active.filter(project=project).count()
        if number + more > project.flag_limit:
            raise InvalidOperation(
                f"Project {project.pk} has {number} of at most {project.flag_limit} flags; "
                f"{more} more {'does' if more == 1 else 'do'} not fit."
            )
    limit = Limits.from_settings().flags
    if active.count() + more > limit:
        raise ValidationError(f"At most {limit} flags are allowed here; archive some first.")

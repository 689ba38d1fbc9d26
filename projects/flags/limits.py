"""How many flags a project and the whole installation may have."""

from flagadmin.errors import InvalidOperation, ValidationError
from projects.limits import Limits
from projects.models import Flag, Project


def check_room(project: Project, more: int) -> None:
    """Whether this many active flags may be added; the project is locked. Archived flags do not count.

    Raises InvalidOperation for a full project, ValidationError for a full installation.
    """
    if more <= 0:
        return
    active = Flag.objects.filter(archived_at=None)
    if project.flag_limit is not None:
        there = active.filter(project=project).count()
        if there + more > project.flag_limit:
            raise InvalidOperation(
                f"Project {project.pk} has {there} of at most {project.flag_limit} flags; "
                f"{more} more {'does' if more == 1 else 'do'} not fit."
            )
    limit = Limits.from_settings().flags
    if active.count() + more > limit:
        raise ValidationError(f"At most {limit} flags are allowed here; archive some first.")

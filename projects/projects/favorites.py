"""Marks flags and projects as a user's favorites. This needs only the permission to read them."""

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation
from groups.access import Caller
from groups.models import User
from projects.access import access_flag, access_project
from projects.models import FavoriteFlag, FavoriteProject


@transactional
def set_flag_favorite(project_id: str, name: str, favorite: bool, *, caller: Caller) -> None:
    """Marks or unmarks a flag as the caller's favorite. Repeating it is not an error.

    Raises NotFound, and InvalidOperation for a token that belongs to no user.
    """
    flag = access_flag(caller, project_id, name, archived=False)
    user = _find_person(caller)
    rows = FavoriteFlag.objects.filter(user=user, flag=flag)
    if favorite == rows.exists():
        return
    if favorite:
        FavoriteFlag.objects.bulk_create([FavoriteFlag(user=user, flag=flag)], ignore_conflicts=True)
    else:
        rows.delete()
    kind = EventType.FEATURE_FAVORITED if favorite else EventType.FEATURE_UNFAVORITED
    record(Event(type=kind, project=project_id, feature=name), actor=caller)


@transactional
def set_project_favorite(project_id: str, favorite: bool, *, caller: Caller) -> None:
    """Marks or unmarks a project as the caller's favorite. Repeating it is not an error.

    Raises NotFound, and InvalidOperation for a token that belongs to no user.
    """
    project = access_project(caller, project_id)
    user = _find_person(caller)
    rows = FavoriteProject.objects.filter(user=user, project=project)
    if favorite == rows.exists():
        return
    if favorite:
        FavoriteProject.objects.bulk_create(
            [FavoriteProject(user=user, project=project)], ignore_conflicts=True
        )
    else:
        rows.delete()
    kind = EventType.PROJECT_FAVORITED if favorite else EventType.PROJECT_UNFAVORITED
    record(Event(type=kind, project=project_id), actor=caller)


def _find_person(caller: Caller) -> User:
    if caller.user is None:
        raise InvalidOperation("This token belongs to no user, so it has no favorites.")
    return caller.user

"""Marks flags and projects as a user's favourites. This needs only the permission to read them."""

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation
from groups.access import Caller
from groups.models import User
from projects.access import access_flag, access_project
from projects.models import FavouriteFlag, FavouriteProject


@transactional
def set_flag_favourite(project_id: str, name: str, favourite: bool, *, caller: Caller) -> None:
    """Marks or unmarks a flag as the caller's favourite. Repeating it is not an error.

    Raises NotFound, and InvalidOperation for a token that belongs to no user.
    """
    flag = access_flag(caller, project_id, name, archived=False)
    user = _person(caller)
    rows = FavouriteFlag.objects.filter(user=user, flag=flag)
    if favourite == rows.exists():
        return
    if favourite:
        FavouriteFlag.objects.bulk_create([FavouriteFlag(user=user, flag=flag)], ignore_conflicts=True)
    else:
        rows.delete()
    kind = EventType.FEATURE_FAVORITED if favourite else EventType.FEATURE_UNFAVORITED
    record(Event(type=kind, project=project_id, feature=name), actor=caller)


@transactional
def set_project_favourite(project_id: str, favourite: bool, *, caller: Caller) -> None:
    """Marks or unmarks a project as the caller's favourite. Repeating it is not an error.

    Raises NotFound, and InvalidOperation for a token that belongs to no user.
    """
    project = access_project(caller, project_id)
    user = _person(caller)
    rows = FavouriteProject.objects.filter(user=user, project=project)
    if favourite == rows.exists():
        return
    if favourite:
        FavouriteProject.objects.bulk_create(
            [FavouriteProject(user=user, project=project)], ignore_conflicts=True
        )
    else:
        rows.delete()
    kind = EventType.PROJECT_FAVORITED if favourite else EventType.PROJECT_UNFAVORITED
    record(Event(type=kind, project=project_id), actor=caller)


def _person(caller: Caller) -> User:
    if caller.user is None:
        raise InvalidOperation("This token belongs to no user, so it has no favourites.")
    return caller.user

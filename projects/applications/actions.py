"""Changes the details that users enter about an application, and deletes applications."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from groups.access import Caller, Permission
from projects.applications.documents import find_readable_applications
from projects.models import Application, ApplicationInstance, FlagUsage, ProjectApplication, UnknownFlag


@transactional
def update_application(name: str, changes: Mapping[str, Any], *, caller: Caller) -> Application:
    """Changes the given ones of ``description url color icon strategies``. Raises NotFound, NoAccess."""
    application = access_application_for_update(caller, name)
    changed = {key: value for key, value in changes.items() if getattr(application, key) != value}
    if changed:
        before = {key: getattr(application, key) for key in changed}
        for key, value in changed.items():
            setattr(application, key, value)
        application.save(update_fields=list(changed))
        event = Event(type=EventType.APPLICATION_UPDATED, subject=name, before=before, after=changed)
        record(event, actor=caller)
    return application


@transactional
def delete_application(name: str, *, caller: Caller) -> None:
    """Deletes an application with its instances and usage. Does nothing if there is none. Raises NoAccess.

    Its next report creates it again. Its hourly counts are deleted when they expire.
    """
    caller.check(Permission.UPDATE_APPLICATION)
    application = find_readable_applications(caller).select_for_update().filter(name=name).first()
    if application is None:
        return
    for rows in (ApplicationInstance, FlagUsage, ProjectApplication, UnknownFlag):
        rows._base_manager.filter(application_id=application.pk).delete()
    application.delete()
    record(Event(type=EventType.APPLICATION_DELETED, subject=name, before={"appName": name}), actor=caller)


def access_application_for_update(caller: Caller, name: str) -> Application:
    readable = find_readable_applications(caller).select_for_update()
    application = get_or_404(readable, f"Application {name} not found.", name=name)
    caller.check(Permission.UPDATE_APPLICATION)
    return application

"""Sets and removes the payload schema of a flag."""

from typing import Any

from flagadmin.core.audit.record import Event, EventType, record_change
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import check_problems
from groups.access import Caller, Permission
from projects.access import access_flag, access_flag_for_update
from projects.flags.payloads.rules import schema_problems
from projects.flags.payloads.stored import check_at_end
from projects.models import Flag, PayloadSchema


def schema_document(flag: Flag) -> Document:
    """``{"schema": …}``, null without one."""
    return {"schema": PayloadSchema.objects.filter(flag=flag).values_list("schema", flat=True).first()}


@transactional
def set_schema(project_id: str, name: str, schema: Any, *, expected: Expected = None, caller: Caller) -> None:
    """Sets the schema; None removes it.

    Raises NotFound, NoAccess, EditConflict, and ValidationError for an invalid schema, or if a stored payload does not
    satisfy it.
    """
    if schema is not None:  # takes up to 1.6 s, in which others can change the project
        access_flag(caller, project_id, name, permission=Permission.UPDATE_FEATURE)
        check_problems(schema_problems(schema))
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    before = schema_document(flag)
    check_expected(expected, before)
    if schema is None:
        PayloadSchema.objects.filter(flag=flag).delete()
    else:
        PayloadSchema.objects.update_or_create(flag=flag, defaults={"schema": schema})
        check_at_end(project_id, [name])
    event = Event.of_flag(
        EventType.FEATURE_PAYLOAD_SCHEMA_UPDATED, flag, before=before, after={"schema": schema}
    )
    record_change(event, actor=caller)

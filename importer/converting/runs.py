"""Imports of files of other products: stores the file with its choices, and converts it whenever it is planned."""

import zlib
from uuid import UUID

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Conflict
from groups.access import Caller
from importer.body.schemas import parse_body
from importer.bulk_work import bulk_work
from importer.converting.convert import Options
from importer.converting.stored import StoredConversion, recognize_file
from importer.models import ImportRun
from importer.runs import access_run, check_run, create_run, store_run


@bulk_work
def upload(
    body: bytes,
    *,
    caller: Caller,
    project: str,
    environment: str,
    file_name: str,
    source_environment: str = "",
) -> UUID:
    """Creates a pending run of an export, or of another product's file. Raises ValidationError."""
    product = recognize_file(body, file_name)
    if not product:
        run = create_run(body, caller=caller, project=project, environment=environment, file_name=file_name)
        return run.id
    stored = StoredConversion(product, file_name, body, Options(environment=source_environment))
    return create_conversion(stored, caller=caller, project=project, environment=environment).id


@transactional
def create_conversion(
    stored: StoredConversion, *, caller: Caller, project: str, environment: str
) -> ImportRun:
    conversion, report = stored.convert_with_report()
    return store_run(
        parse_body(conversion.dump(), project=project, environment=environment),
        stored.dump(),
        size=stored.size,
        caller=caller,
        file_name=stored.file_name,
        source=ImportRun.Source.CONSOLE,
        converted_from=conversion.source.product,
        preview={"conversion": report},
    )


@bulk_work
@transactional
def change_conversion(
    run_id: UUID, options: Options, users: bytes, users_name: str, *, caller: Caller
) -> None:
    """Converts a pending run again. Raises NotFound, Conflict, ValidationError."""
    run = access_run(caller, run_id)
    if run.body is None or not run.converted_from:
        raise Conflict("This import is no longer pending, or not of another product's file.")
    stored = StoredConversion.load(zlib.decompress(bytes(run.body))).choose(options, users, users_name)
    _, run.preview["conversion"] = stored.convert_with_report()
    run.body, run.size = zlib.compress(stored.dump(), 1), stored.size
    ImportRun.objects.filter(id=run.id, body__isnull=False).update(body=run.body, size=run.size)
    check_run(run, caller=caller)

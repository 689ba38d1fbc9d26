"""Creates, finds, downloads and deletes runs."""

import codecs
import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO, StringIO
from itertools import islice
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from rest_framework.request import Request

from flagadmin.core.db.transactions import stream_rows, transactional
from flagadmin.core.errors import Conflict, NotFound, ValidationError
from flagadmin.core.http.responses import accepts_gzip
from flagadmin.core.lists.pages import is_for_spreadsheet, quote_formula
from flagadmin.core.server.worker_processes import run_in_process
from groups.access import Caller
from playground.models import UserRun
from playground.queries import list_known_fields, read_known_revisions
from playground.request import PlaygroundRequest
from playground.snapshot_cache import load_snapshot_at
from playground.user_runs import worker
from playground.user_runs.evaluate import GZIP, check_space, choose_names, prepare_evaluation, write_result
from playground.user_runs.evaluate import RunState as State
from playground.user_runs.file import UserFile

MAX_RUNS = 5
"""The maximum number of runs per caller; a new one replaces the oldest ended one."""
MAX_RESULTS = 10_000_000
"""Users times flags per run."""
AT_ONCE = 20_000
"""The largest number of results that are evaluated within the request."""

# Finding --------------------------------------------------------------------------------------------------


def list_own_runs(caller: Caller) -> list[UserRun]:
    """The caller's runs of projects that they may still read, the latest first. Without files and counts."""
    return [run for run in _find_own(caller).defer("body", "counts") if _may_read(caller, run)]


def access_run(caller: Caller, run_id: UUID | str) -> UserRun:
    """The run without its file. Raises NotFound, also for other callers' runs."""
    try:
        run = _find_own(caller).defer("body").filter(id=UUID(str(run_id))).first()
    except ValueError:
        run = None
    if run is None or not _may_read(caller, run):
        raise NotFound(f"Run {str(run_id)[:100]} not found. Runs are deleted after {worker.KEPT.days} days.")
    return run


def _find_own(caller: Caller) -> QuerySet[UserRun]:
    name = {"caller_name": caller.name} if caller.id is None else {}  # tokens have no id
    return UserRun.objects.filter(caller_id=caller.id, **name)


def _may_read(caller: Caller, run: UserRun) -> bool:
    allowed = caller.readable_projects
    return allowed is None or set(run.projects) <= set(allowed)


def read_result(run: UserRun) -> Iterator[bytes]:
    """The result as a gzip file. Raises Conflict if the run is not done."""
    if run.state != State.DONE:
        raise Conflict(f"This run is {run.get_state_display().lower()}: it has no result.")
    return map(bytes, stream_rows(run.parts.order_by("id").values_list("data", flat=True), 1))


# Changing -------------------------------------------------------------------------------------------------


@transactional
def create_run(
    body: bytes,
    *,
    caller: Caller,
    environment: str,
    projects: list[str] | None = None,
    flag: str = "",
    file_name: str = "",
) -> UserRun:
    """Checks a file of users and starts its evaluation. ``projects`` None: all that the caller may read.

    Raises ValidationError with rows and columns, or if the result would be too large, and Conflict if too many runs
    have not ended or there is no space for the result.
    """
    query = PlaygroundRequest([environment], projects, {}, {})
    current = read_known_revisions(caller, query, {"environment": environment})
    compiled = load_snapshot_at(current, environment).snapshot
    names = choose_names(compiled, flag)
    rows = _count_users(body, list_known_fields(list(current)))
    if rows * len(names) > MAX_RESULTS:
        message = (
            f"{rows:,} users and {len(names):,} flags would give {rows * len(names):,} results; a run may have "
            f"{MAX_RESULTS:,}. Choose fewer projects or a flag."
        )
        raise ValidationError.at("file", message)
    make_room(caller)
    now, at_once = timezone.now(), rows * len(names) <= AT_ONCE
    if not at_once:
        evaluation = prepare_evaluation(compiled, flag, names, now)
        check_space(evaluation, UserFile(BytesIO(body)), users=rows, flags=len(names))
    return begin_run(
        caller,
        (lambda run: write_result(run, compiled)) if at_once else None,
        projects=list(current),
        environment=environment,
        flag=flag,
        file_name=file_name[:255],
        created_at=now,
        body=gzip.compress(body, 1),
        flags=len(names),
        rows=rows,
    )


def begin_run(caller: Caller, write: Callable[[UserRun], None] | None, **values: Any) -> UserRun:
    """Stores a run and evaluates it at once with ``write``, or else in the process beside the workers."""
    state = State.RUNNING if write else State.WAITING
    run = UserRun.objects.create(caller_id=caller.id, caller_name=caller.name, state=state, **values)
    if write:
        write(run)
        run.refresh_from_db(fields=("state", "counts", "rows", "rows_done", "size", "finished_at"))
    else:
        transaction.on_commit(worker.start)
    return run


def _count_users(body: bytes, known: set[str]) -> int:
    """Counts the users. Parses a large file in a separate process. Raises ValidationError."""
    if len(body) > settings.IMPORT_PROCESS_BYTES:
        UserFile(BytesIO(body)).check_header(known)
        return run_in_process(check_users, body, known)
    return check_users(body, known)


def check_users(body: bytes, known: set[str]) -> int:
    return UserFile(BytesIO(body)).check(known)


def make_room(caller: Caller, *, replaces: bool = True) -> None:
    """Deletes the oldest ended runs, so that another can begin; none unless it ``replaces`` them. Raises Conflict."""
    runs = list(_find_own(caller).order_by("created_at").only("id", "state"))
    ended = [run.pk for run in runs if run.has_ended]
    more = len(runs) - MAX_RUNS + 1
    if more > 0 and not replaces:
        raise Conflict(f"You have {len(runs)} runs, and {MAX_RUNS} is the maximum. Delete one of them first.")
    if more > len(ended):
        raise Conflict(f"{MAX_RUNS} of your runs have not ended. Cancel one, or wait for one to end.")
    worker.remove(UserRun.objects.filter(id__in=ended[: max(more, 0)]))


def delete_run(caller: Caller, run_id: UUID | str) -> UserRun:
    """Deletes a run and its result, and stops its evaluation. Raises NotFound."""
    run = access_run(caller, run_id)
    worker.remove(UserRun.objects.filter(id=run.pk))
    return run


MAX_PLAIN = 50_000_000
"""Bytes of a result that is sent uncompressed."""
LINES = 1_000  # lines sent together


def make_csv_download(request: HttpRequest | Request, run: UserRun) -> StreamingHttpResponse:
    """The result, in its stored form if the client accepts gzip; ``?spreadsheet=true`` without formulas.

    Raises Conflict, ValidationError.
    """
    parts: Iterable[bytes] = read_result(run)
    gzipped = accepts_gzip(request)
    if not gzipped and run.size > MAX_PLAIN:
        raise ValidationError(
            f"The result has {run.size // 1_000_000:,} MB and is only sent compressed. Send Accept-Encoding: gzip "
            "(curl --compressed)."
        )
    if is_for_spreadsheet(request):
        quoted = _quote_formulas(_unpack(parts))
        parts = _pack(quoted) if gzipped else quoted
    elif not gzipped:
        parts = _unpack(parts)
    response = StreamingHttpResponse(
        parts,
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{run.kind}-{run.pk}.csv"',
            "Vary": "Accept-Encoding",
        },
    )
    if gzipped:
        response["Content-Encoding"] = "gzip"
    return response


def _unpack(parts: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(GZIP)
    return (unpacker.decompress(part) for part in parts)


def _pack(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=GZIP)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()


def _quote_formulas(parts: Iterable[bytes]) -> Iterator[bytes]:
    rows = csv.reader(_split_lines(parts))
    while some := list(islice(rows, LINES)):
        text = StringIO()
        csv.writer(text).writerows(map(quote_formula, row) for row in some)
        yield text.getvalue().encode()


def _split_lines(parts: Iterable[bytes]) -> Iterator[str]:
    decode = codecs.getincrementaldecoder("utf-8")().decode
    rest = ""
    for part in parts:
        *lines, rest = (rest + decode(part)).split("\n")
        yield from (f"{line}\n" for line in lines)

"""Creates, finds and deletes runs."""

import gzip
from collections.abc import Iterator
from io import BytesIO
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from flagadmin.core.db.transactions import stream_rows, transactional
from flagadmin.core.errors import Conflict, NotFound, ValidationError
from groups.access import Caller
from playground.models import UserRun
from playground.queries import list_known_fields, read_known_revisions
from playground.request import PlaygroundRequest
from playground.snapshot_cache import load_snapshot_at
from playground.user_runs import worker
from playground.user_runs.file import UserFile
from playground.user_runs.space import check_space
from playground.user_runs.write import State, choose_names, prepare_evaluation, write_result

MAX_RUNS = 5
"""The maximum number of runs of each caller; a new one replaces the oldest that has ended."""
MAX_RESULTS = 10_000_000
"""Users times flags of a run."""
AT_ONCE = 20_000
"""The largest number of results up to which a run is evaluated within its request."""

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

    Raises ValidationError naming rows and columns or if the result would be too large, and Conflict if too many runs
    have not ended or there is no space for the result.
    """
    query = PlaygroundRequest([environment], projects, {}, {})
    current = read_known_revisions(caller, query, {"environment": environment})
    compiled = load_snapshot_at(current, environment).snapshot
    names = choose_names(compiled, flag)
    rows = UserFile(BytesIO(body)).check(list_known_fields(list(current)))
    if rows * len(names) > MAX_RESULTS:
        message = (
            f"{rows:,} users and {len(names):,} flags would give {rows * len(names):,} results; a run may have "
            f"{MAX_RESULTS:,}. Choose fewer projects or a flag."
        )
        raise ValidationError.at("file", message)
    _make_room(caller)
    now, at_once = timezone.now(), rows * len(names) <= AT_ONCE
    if not at_once:
        evaluation = prepare_evaluation(compiled, flag, names, now)
        check_space(evaluation, UserFile(BytesIO(body)), users=rows, flags=len(names))
    run = UserRun.objects.create(
        state=State.RUNNING if at_once else State.WAITING,
        caller_id=caller.id,
        caller_name=caller.name,
        projects=list(current),
        environment=environment,
        flag=flag,
        file_name=file_name[:255],
        created_at=now,
        body=gzip.compress(body, 1),
        flags=len(names),
        rows=rows,
    )
    if at_once:
        write_result(run, compiled)
        run.refresh_from_db(fields=("state", "counts", "rows_done", "size", "finished_at"))
    else:
        transaction.on_commit(worker.start)
    return run


def _make_room(caller: Caller) -> None:
    runs = list(_find_own(caller).order_by("created_at").only("id", "state"))
    ended = [run.pk for run in runs if run.has_ended]
    more = len(runs) - MAX_RUNS + 1
    if more > len(ended):
        raise Conflict(f"{MAX_RUNS} of your runs have not ended. Cancel one, or wait for one to end.")
    worker.remove(UserRun.objects.filter(id__in=ended[: max(more, 0)]))


def delete_run(caller: Caller, run_id: UUID | str) -> UserRun:
    """Deletes a run and its result; one that is being evaluated stops. Raises NotFound."""
    run = access_run(caller, run_id)
    worker.remove(UserRun.objects.filter(id=run.pk))
    return run

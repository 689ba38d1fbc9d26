"""Evaluates a run and stores its result. A run that is deleted meanwhile stops."""

import gzip
import logging
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from typing import IO, Any, cast

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from flagadmin.core.errors import AppError, ValidationError
from playground.engine.context import format_time
from playground.engine.snapshot import Snapshot
from playground.models import UserRun, UserRunPart
from playground.snapshot_cache import load_snapshot
from playground.user_runs.evaluate import UserEvaluation
from playground.user_runs.file import UserFile
from playground.user_runs.space import free_bytes, get_max_result_bytes

log = logging.getLogger("flagadmin.user_runs")

MAX_ATTEMPTS = 3
State = UserRun.State


class _Deleted(Exception):
    """The run was deleted while it was evaluated."""


def choose_names(compiled: Snapshot, flag: str) -> list[str]:
    if flag and flag not in compiled.positions:
        raise ValidationError.at("flag", f"flag {flag[:100]} not found")
    if not compiled.flags:
        raise ValidationError.at("projects", "have no flags to evaluate")
    return [flag] if flag else compiled.names


def prepare_evaluation(compiled: Snapshot, flag: str, names: Sequence[str], at: datetime) -> UserEvaluation:
    """Evaluates these flags, or only one, as of a moment."""
    return UserEvaluation(compiled.only(flag) if flag else compiled, names, now=format_time(at))


def list_unfinished() -> QuerySet[UserRun]:
    return UserRun.objects.filter(state__in=(State.WAITING, State.RUNNING)).order_by("created_at")


def evaluate_run(run: UserRun) -> None:
    """Evaluates a run from its beginning, and stores why if it cannot be."""
    UserRunPart.objects.filter(run=run).delete()
    run.attempts += 1
    problem = "This run ended early several times. Try again with fewer users or flags."
    try:
        if run.attempts <= MAX_ATTEMPTS:
            _update(run, state=State.RUNNING, rows_done=0, size=0, attempts=F("attempts") + 1)
            write_result(run, load_snapshot(run.projects, run.environment).snapshot)
            return
    except _Deleted:
        return
    except AppError as error:
        problem = error.message
    except Exception:
        log.exception("The run %s of %s users failed", run.pk, run.rows)
        problem = "Something went wrong. The server log has the details."
    UserRunPart.objects.filter(run=run).delete()
    UserRun.objects.filter(id=run.pk).update(
        state=State.FAILED, problem=problem, finished_at=timezone.now(), body=b""
    )


def write_result(run: UserRun, compiled: Snapshot) -> None:
    """Writes the result, part by part. Raises _Deleted."""
    names = choose_names(compiled, run.flag)
    evaluation = prepare_evaluation(compiled, run.flag, names, run.created_at)
    written, most = 0, min(get_max_result_bytes(), free_bytes())
    with gzip.open(BytesIO(run.body)) as stream:
        for chunk in evaluation.chunks(UserFile(cast("IO[bytes]", stream))):
            written += len(chunk.data)
            if written > most:
                raise ValidationError(
                    f"The result is larger than {most // 1_000_000:,} MB compressed, for which there is space. "
                    "Choose fewer flags."
                )
            with transaction.atomic():
                _update(run, rows_done=F("rows_done") + chunk.rows, size=F("size") + chunk.size)
                UserRunPart.objects.create(run=run, data=chunk.data)
    _update(
        run,
        state=State.DONE,
        counts=evaluation.counts(),
        flags=len(names),
        finished_at=timezone.now(),
        body=b"",
    )


def _update(run: UserRun, **values: Any) -> None:
    if not UserRun.objects.filter(id=run.pk).update(**values):
        raise _Deleted

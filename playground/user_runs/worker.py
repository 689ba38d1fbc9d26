"""Evaluates waiting runs one after the other, in a process beside the workers, and deletes old ones."""

from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from flagadmin.core.db.transactions import Lock, hold_if_free
from flagadmin.core.server.worker_processes import start_process
from playground.models import UserRun
from playground.user_runs.evaluate import evaluate_run, find_unfinished

KEPT = timedelta(days=7)


def start() -> None:
    """Starts a process that evaluates waiting runs. It ends at once if another one is running."""
    start_process(work)


def work() -> None:
    while find_unfinished():
        with hold_if_free(Lock.USER_RUNS) as is_alone:
            if not is_alone:
                return
            while run := find_unfinished():
                evaluate_run(run)


def resume() -> None:
    """Starts a process for runs that were interrupted by the end of theirs."""
    if find_unfinished():
        with hold_if_free(Lock.USER_RUNS) as is_free:
            pass
        if is_free:
            start()


def delete_old_runs() -> None:
    remove(UserRun.objects.filter(created_at__lt=timezone.now() - KEPT))


@transaction.atomic
def remove(runs: QuerySet[UserRun]) -> None:
    """Deletes runs with their results. Locks them first, so that no part is added meanwhile."""
    ids = list(runs.select_for_update().order_by("id").values_list("id", flat=True))
    UserRun.objects.filter(id__in=ids).only("id").delete()

"""Estimates the space that the results of a run may take, from some of its users, before it begins."""

import shutil

from django.conf import settings
from django.db.models import BigIntegerField, F, Sum
from django.db.models.functions import Length

from flagadmin.core.db.backups.programs import is_bundled
from flagadmin.core.errors import Conflict, ValidationError
from playground.models import UserRun, UserRunPart
from playground.user_runs.evaluate import UserEvaluation
from playground.user_runs.file import Sample, UserFile

SHARE = 4
"""A run may take a quarter of the space for all."""
SAMPLED_RESULTS = 5_000
MIN_SAMPLED_USERS = 20
MARGIN = 1.1
MB = 1_000_000


def get_max_result_bytes() -> int:
    """Returns the maximum size of one run, compressed."""
    return int(settings.USER_RESULTS_BYTES // SHARE)


def free_bytes() -> int:
    """Returns how many bytes results may still take: within the setting, and within half of the disk's free space if
    the database is bundled."""
    stored = UserRunPart.objects.aggregate(bytes=Sum(Length("data")))["bytes"] or 0
    free = settings.USER_RESULTS_BYTES - stored
    if is_bundled():
        free = min(free, shutil.disk_usage(settings.DATA_DIR).free // 2)
    return max(int(free), 0)


def check_space(evaluation: UserEvaluation, file: UserFile, *, users: int, flags: int) -> None:
    """Raises ValidationError if the result would be too large, Conflict if there is no space for it now."""
    needed = estimate_bytes(evaluation, file, users=users, flags=flags)
    if needed > get_max_result_bytes():
        fewer = int(users * get_max_result_bytes() / needed)
        message = (
            f"has {users:,} users: their results for {flags:,} flags would take about {_format_size(needed)} "
            f"compressed, and a run may take {_format_size(get_max_result_bytes())}. Choose fewer flags, or send about "
            f"{fewer:,} users at once"
        )
        raise ValidationError.at("file", message)
    reserved = _count_waiting_results() * needed // (users * flags)
    if needed > (free := max(free_bytes() - reserved, 0)):
        raise Conflict(
            f"The result would take about {_format_size(needed)}, and there is space for {_format_size(free)}. "
            "Delete results that are no longer needed, or wait until they are deleted."
        )


def _count_waiting_results() -> int:
    """Users times flags of runs that have not ended, without what they have written: there must be space for each."""
    unfinished = UserRun.objects.filter(state__in=(UserRun.State.WAITING, UserRun.State.RUNNING))
    left = unfinished.aggregate(
        results=Sum((F("rows") - F("rows_done")) * F("flags"), output_field=BigIntegerField())
    )
    return left["results"] or 0


def estimate_bytes(evaluation: UserEvaluation, file: UserFile, *, users: int, flags: int) -> int:
    """About how long the compressed result will be. ``evaluation`` is not used for anything else."""
    sample = Sample.of(file, users, max(MIN_SAMPLED_USERS, SAMPLED_RESULTS // flags))
    written = sum(len(chunk.data) for chunk in evaluation.chunks(sample))
    return int(written / len(sample.chosen) * users * MARGIN)


def _format_size(length: int) -> str:
    return f"{length / MB:,.0f} MB" if length >= 10 * MB else f"{length / MB:,.1f} MB"

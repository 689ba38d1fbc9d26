"""Evaluates the users of a file chunk by chunk: the lines of the result, and counts for each flag.

Reads results from columns (`playground.comparison`), and reasons, which contain each user's own values, from one
evaluation of each user.
"""

import gzip
import logging
import re
import shutil
import signal
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from io import BytesIO
from itertools import islice
from operator import attrgetter
from typing import IO, Any, NamedTuple, cast

from django.conf import settings
from django.db import transaction
from django.db.models import BigIntegerField, F, Q, Sum
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.module_loading import import_string

from flagadmin.core.db.backups.programs import is_bundled
from flagadmin.core.errors import AppError, Conflict, ValidationError
from playground.comparison.results import Answer, Shares, StateResults, drop_payloads
from playground.comparison.table import ContextTable
from playground.engine.context import Context, format_time
from playground.engine.evaluator import Evaluation
from playground.engine.outcomes import State
from playground.engine.reasons import Reasons
from playground.engine.snapshot import Snapshot
from playground.models import Analysis, UserRun, UserRunPart, Work
from playground.snapshot_cache import load_snapshot
from playground.user_runs.file import Sample, User, UserFile

CHUNK_RESULTS = 200_000
CHUNK_ROWS = 4_000
CHUNK_CELLS = 400_000
IDS = ("userId", "sessionId")
COLUMNS = ("row", *IDS, "flag", "result", "variant", "reason")
WORDS = {State.ON: "On", State.OFF: "Off", State.UNKNOWN: "Can't tell"}
GZIP = 31  # window bits of zlib
_SPECIAL = re.compile(r'[,"\r\n]').search
"""Finds a character that requires quoting."""


class Chunk(NamedTuple):
    """Some rows: their number, their part of the gzip file, and its length before compression."""

    rows: int
    data: bytes
    size: int


class UserEvaluation:
    """Evaluates these flags of a snapshot for the users of a file."""

    def __init__(self, snapshot: Snapshot, names: Sequence[str], *, now: str) -> None:
        self._snapshot = snapshot
        self._names = names
        self._now = now
        self._heads: dict[tuple[str, Shares], str] = {}
        self._counted: dict[str, dict[Answer, Fraction]] = {name: defaultdict(Fraction) for name in names}

    def chunks(self, file: UserFile | Sample) -> Iterator[Chunk]:
        """Evaluates all users; memory holds one chunk at a time."""
        packer = zlib.compressobj(1, wbits=GZIP)
        ids = [field for field in IDS if field in file.fields]
        head = ",".join(column for column in COLUMNS if column not in IDS or column in ids) + "\r\n"
        begin = packer.compress(head.encode())
        size = len(head)
        by_cells = CHUNK_CELLS // len(file.fields)
        rows = max(1, min(CHUNK_ROWS, by_cells, CHUNK_RESULTS // max(len(self._names), 1)))
        everybody = file.users()
        while users := list(islice(everybody, rows)):
            data = [begin]
            for text in self._write_lines(users, ids):
                line = text.encode()
                size += len(line)
                data.append(packer.compress(line))
            yield Chunk(len(users), b"".join(data), size)
            begin, size = b"", 0
        yield Chunk(0, begin + packer.flush(), size)

    def counts(self) -> list[dict[str, Any]]:
        """Counts the users of each flag by result; random results count with their share."""
        return [
            {
                "name": name,
                "results": [
                    {
                        "isEnabled": "unknown" if answer.state is State.UNKNOWN else answer.state is State.ON,
                        "variant": answer.variant,
                        "contexts": float(count),
                    }
                    for answer, count in sorted(
                        counted.items(), key=lambda item: (item[0].state.value, item[0].variant or "")
                    )
                ],
            }
            for name, counted in self._counted.items()
        ]

    def _write_lines(self, users: Sequence[User], ids: Sequence[str]) -> Iterator[str]:
        """Writes the lines of all flags, user by user."""
        contexts = [Context.of_texts(fields, now=self._now) for _, fields in users]
        results = StateResults(self._snapshot, ContextTable(contexts))
        columns = [self._make_column(name, results) for name in self._names]
        chosen = [self._snapshot.positions[name] for name in self._names]
        for (number, fields), context, heads in zip(users, contexts, zip(*columns, strict=True), strict=True):
            # A drawn bucket is the first, so that a random result gets the reason why it can be on.
            evaluation = Evaluation(self._snapshot, context, lambda: 0.0)
            reason_of, flags, outcomes = Reasons(evaluation).flag, self._snapshot.flags, evaluation.outcomes
            reasons = [reason_of(flags[place], outcomes[place]) for place in chosen]
            user = ",".join([str(number), *(_quote(fields.get(field, "")) for field in ids)])
            yield "".join(
                [f"{user},{head}{_quote(reason)}\r\n" for head, reason in zip(heads, reasons, strict=True)]
            )

    def _make_column(self, name: str, results: StateResults) -> list[str]:
        """For each user, the text between the user and the reason: flag, result and variant."""
        contexts_by_result = results.results(name)
        counted = self._counted[name]
        column = [""] * len(results.table)
        for with_payloads, mask in contexts_by_result.items():
            shares = drop_payloads(with_payloads)
            head = self._make_head(name, shares)
            for position in results.table.positions(mask):
                column[position] = head
            users = mask.bit_count()
            for answer, share in shares:
                counted[answer] += share * users
        return column

    def _make_head(self, name: str, shares: Shares) -> str:
        head = self._heads.get((name, shares))
        if head is None:
            cells = (name, describe_result(shares), describe_variant(shares))
            head = self._heads[name, shares] = ",".join(map(_quote, cells)) + ","
        return head


def describe_result(shares: Shares) -> str:
    """Describes a result: On, Off, Can't tell, or the share of calls that are on."""
    states = {answer.state for answer, _ in shares}
    if len(states) == 1:
        return WORDS[states.pop()]
    if State.UNKNOWN in states:
        return WORDS[State.UNKNOWN]
    return f"On for {_format_percent(sum(share for answer, share in shares if answer.state is State.ON))} of calls"


def describe_variant(shares: Shares) -> str:
    """The variant; if it is random, each one with its share of the calls that are on."""
    named = [(answer.variant, share) for answer, share in shares if answer.variant is not None]
    if len(named) == 1:
        return named[0][0]
    on = sum(share for answer, share in shares if answer.state is State.ON)
    return "; ".join(f"{name} {_format_percent(share / on)}" for name, share in named)


def _format_percent(share: Fraction | int) -> str:
    return f"{float(share) * 100:.3g} %"


def _quote(text: str) -> str:
    if _SPECIAL(text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'


log = logging.getLogger("flagadmin.user_runs")

MAX_ATTEMPTS = 3
MAX_CPU_SECONDS = 1_800
"""Of one run, so that others do not wait for it forever."""
PROBLEMS_SHOWN = 20
RunState = Work.State


class _Deleted(Exception):
    """The run was deleted while it was evaluated."""


def choose_names(compiled: Snapshot, flag: str) -> list[str]:
    if flag and flag not in compiled.positions:
        raise ValidationError.at("flag", f"flag {flag[:100]} not found")
    if not compiled.flags:
        raise ValidationError.at("projects", "have no flags to evaluate")
    return [flag] if flag else compiled.names


def prepare_evaluation(compiled: Snapshot, flag: str, names: Sequence[str], at: datetime) -> UserEvaluation:
    """Prepares the evaluation of these flags, or only of one, as of a moment."""
    return UserEvaluation(compiled.only(flag) if flag else compiled, names, now=format_time(at))


def find_unfinished() -> Work | None:
    """The oldest run or analysis that waits, or was interrupted."""
    unfinished = Q(state__in=(RunState.WAITING, RunState.RUNNING))
    models: tuple[type[Work], ...] = (UserRun, Analysis)
    queues = (
        model._default_manager.filter(unfinished).defer("body").order_by("created_at") for model in models
    )
    found = (queue.first() for queue in queues)
    return min((run for run in found if run), key=attrgetter("created_at"), default=None)


def evaluate_run(run: Work) -> None:
    """Does a run's work from its beginning. Stores the reason if that fails."""
    run.forget_parts()
    run.attempts += 1
    problem = "This run ended early several times. Try again with fewer users or flags."
    try:
        if run.attempts <= MAX_ATTEMPTS:
            begin = {"size": 0} if isinstance(run, UserRun) else {}
            update_run(run, state=RunState.RUNNING, rows_done=0, attempts=F("attempts") + 1, **begin)
            with limit_cpu(MAX_CPU_SECONDS):
                import_string(run.writer)(run)
            return
    except _Deleted:
        return
    except AppError as error:
        problem = "\n".join(map(str, error.details[:PROBLEMS_SHOWN])) or error.message
    except Exception:
        log.exception("The run %s of %s rows failed", run.pk, run.rows)
        problem = "Something went wrong. The server log has the details."
    run.forget_parts()
    type(run)._default_manager.filter(id=run.pk).update(
        state=RunState.FAILED, problem=problem, finished_at=timezone.now(), body=b""
    )


@contextmanager
def limit_cpu(seconds: float) -> Iterator[None]:
    """Raises ValidationError in what it encloses once this process has used so much more CPU. In a main thread only."""

    def stop(*_: object) -> None:
        raise ValidationError(
            f"This run used more than {seconds / 60:,.3g} minutes of CPU. Try again with fewer rows, users or flags."
        )

    previous = signal.signal(signal.SIGPROF, stop)
    # Again each second, because an exception in a destructor is lost.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def write_users(run: UserRun) -> None:
    write_result(run, load_snapshot(run.projects, run.environment).snapshot)


def write_result(run: UserRun, compiled: Snapshot) -> None:
    """Evaluates the users. Raises _Deleted."""
    names = choose_names(compiled, run.flag)
    evaluation = prepare_evaluation(compiled, run.flag, names, run.created_at)
    with gzip.open(BytesIO(run.body)) as stream:
        store_parts(run, evaluation.chunks(UserFile(cast("IO[bytes]", stream))))
    finish_run(run, counts=evaluation.counts(), flags=len(names))


def store_parts(run: UserRun, chunks: Iterable[Chunk]) -> None:
    """Stores the result, part by part, as far as there is space. Raises _Deleted, ValidationError."""
    written, most = 0, min(get_max_result_bytes(), free_bytes())
    for chunk in chunks:
        written += len(chunk.data)
        if written > most:
            raise ValidationError(
                f"The result is larger than {most // 1_000_000:,} MB compressed, for which there is space. "
                "Choose fewer flags."
            )
        with transaction.atomic():
            update_run(run, rows_done=F("rows_done") + chunk.rows, size=F("size") + chunk.size)
            UserRunPart.objects.create(run=run, data=chunk.data)


def finish_run(run: Work, **values: Any) -> None:
    update_run(run, state=RunState.DONE, finished_at=timezone.now(), body=b"", **values)


def update_run(run: Work, **values: Any) -> None:
    """Raises _Deleted if the run has been deleted, so that its work stops."""
    if not type(run)._default_manager.filter(id=run.pk).update(**values):
        raise _Deleted


SHARE = 4
"""A run may take a quarter of the total space."""
SAMPLED_RESULTS = 5_000
MIN_SAMPLED_USERS = 20
MARGIN = 1.1
MB = 1_000_000


def get_max_result_bytes() -> int:
    """Returns the maximum size of one run, compressed."""
    return int(settings.USER_RESULTS_BYTES // SHARE)


def free_bytes() -> int:
    """The bytes left for results: within the setting, and within half of the disk's free space if the database is
    bundled.
    """
    stored = UserRunPart.objects.aggregate(bytes=Sum(Length("data")))["bytes"] or 0
    free = settings.USER_RESULTS_BYTES - stored
    if is_bundled():
        free = min(free, shutil.disk_usage(settings.DATA_DIR).free // 2)
    return max(int(free), 0)


def check_space(evaluation: UserEvaluation, file: UserFile, *, users: int, flags: int) -> None:
    """Raises ValidationError if the result would be too large, Conflict if there is currently no space for it."""
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
    """Users times flags still to be evaluated in unfinished runs, which all need space."""
    unfinished = UserRun.objects.filter(state__in=(UserRun.State.WAITING, UserRun.State.RUNNING))
    left = unfinished.aggregate(
        results=Sum((F("rows") - F("rows_done")) * F("flags"), output_field=BigIntegerField())
    )
    return left["results"] or 0


def estimate_bytes(evaluation: UserEvaluation, file: UserFile, *, users: int, flags: int) -> int:
    """The approximate length of the compressed result. ``evaluation`` must not be used for anything else."""
    sample = Sample.of(file, users, max(MIN_SAMPLED_USERS, SAMPLED_RESULTS // flags))
    written = sum(len(chunk.data) for chunk in evaluation.chunks(sample))
    return int(written / len(sample.chosen) * users * MARGIN)


def _format_size(length: int) -> str:
    return f"{length / MB:,.0f} MB" if length >= 10 * MB else f"{length / MB:,.1f} MB"

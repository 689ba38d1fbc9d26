"""Evaluates the users of a file chunk by chunk: the lines of the result, and counts for each flag.

Results are read from columns (`playground.comparison`); reasons, which name each user's own values, from one evaluation
of each user.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from playground.comparison.results import StateResults
from playground.comparison.shares import Answer, Shares, drop_payloads
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation
from playground.engine.outcomes import State
from playground.engine.reasons import Reasons
from playground.engine.snapshot import Snapshot
from playground.user_runs.file import Sample, User, UserFile

CHUNK_RESULTS = 200_000
CHUNK_ROWS = 4_000
IDS = ("userId", "sessionId")
COLUMNS = ("row", *IDS, "flag", "result", "variant", "reason")
WORDS = {State.ON: "On", State.OFF: "Off", State.UNKNOWN: "Can't tell"}
GZIP = 31  # window bits of zlib
_SPECIAL = re.compile(r'[,"\r\n]').search
"""Finds a character that has to be quoted."""


class Chunk(NamedTuple):
    """Some rows: how many, their part of the gzip file, and its length before compression."""

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
        """Evaluates everybody; memory holds one chunk at a time."""
        packer = zlib.compressobj(1, wbits=GZIP)
        ids = [field for field in IDS if field in file.fields]
        head = ",".join(column for column in COLUMNS if column not in IDS or column in ids) + "\r\n"
        begin = packer.compress(head.encode())
        size = len(head)
        rows = max(1, min(CHUNK_ROWS, CHUNK_RESULTS // max(len(self._names), 1)))
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
            # A drawn bucket is the first, so that a random result gets the reason for which it can be on.
            evaluation = Evaluation(self._snapshot, context, lambda: 0.0)
            reason_of, flags, outcomes = Reasons(evaluation).flag, self._snapshot.flags, evaluation.outcomes
            reasons = [reason_of(flags[place], outcomes[place]) for place in chosen]
            user = ",".join([str(number), *(_quote(fields.get(field, "")) for field in ids)])
            yield "".join(
                [f"{user},{head}{_quote(reason)}\r\n" for head, reason in zip(heads, reasons, strict=True)]
            )

    def _make_column(self, name: str, results: StateResults) -> list[str]:
        """Makes for each user the text between the user and the reason: flag, result and variant."""
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
    """The variant; if it is random, each with its share of the calls that are on."""
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

"""The result of a proof for one SDK token, the compared contexts, and both in sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from io import BytesIO
from typing import Any

from flagadmin.core.wording import pluralize
from importer.moving.report import Report, name_some_flags
from importer.moving.writing.keeping import SYSTEM
from playground.engine.context import Context, format_time
from playground.queries import list_known_fields
from playground.user_runs.file import MAX_HELD_CELLS, UserFile
from projects.revision import read_revisions


@dataclass(slots=True)
class Difference:
    """A flag that differs. ``users`` is the number of contexts, of ``of``, whose result changes."""

    flag: str
    reason: str
    users: int = 0
    of: int = 0
    example: str = ""


@dataclass(slots=True)
class TokenProof:
    """The results of one token. ``differences`` change a result, ``spellings`` none of the compared ones.

    ``problem`` is the reason if nothing could be compared. Flags that are ``left_out`` of the move are not compared.
    """

    name: str
    environment: str
    flags: int = 0
    differences: list[Difference] = field(default_factory=list)
    spellings: list[Difference] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    problem: str = ""
    note: str = ""

    @property
    def is_equal(self) -> bool:
        return not self.problem and not self.differences

    def take_results(self, other: "TokenProof") -> None:
        """Adopts the results of another token with the same answer."""
        self.flags, self.left_out = other.flags, other.left_out
        self.differences, self.spellings = other.differences, other.spellings

    def document(self) -> dict[str, Any]:
        return {
            "token": self.name,
            "environment": self.environment,
            "flags": self.flags,
            "problem": self.problem,
            "note": self.note,
            "differences": list(map(asdict, self.differences)),
            "leftOut": self.left_out,
            "writtenOtherwise": list(map(asdict, self.spellings)),
        }


MAX_USERS = 100_000
"""Generated users, and users of a file."""


@dataclass(slots=True)
class People:
    """The compared contexts: saved contexts and users of a file, and generated users."""

    explicit: list[Context]
    users: int
    now: datetime

    @property
    def count(self) -> int:
        return len(self.explicit) + self.users


def read_users(csv: bytes, now: datetime) -> list[Context]:
    """A context for each row. Raises ValidationError with the rows and columns of the problems."""
    if not csv:
        return []
    fields = list_known_fields(read_revisions(SYSTEM.readable_projects))
    UserFile(BytesIO(csv)).check(fields, rows=MAX_USERS, cells=MAX_HELD_CELLS)
    time = format_time(now)
    return [Context.of_texts(values, now=time) for _, values in UserFile(BytesIO(csv)).users()]


SHOWN = 50
"""Flags per token whose differences are named. A report has all of them."""


def count_lines(report: Report) -> str:
    counted = [f"{count:,} {kind}" for kind, count in report.counts.items() if count]
    same = f"{pluralize(report.same, 'flag')} {'is' if report.same == 1 else 'are'} the same"
    return f"{', '.join([*counted, same])}."


def describe_proof(proof: TokenProof, users: int) -> Iterator[str]:
    differing = f"{len(proof.differences):,} of {proof.flags:,} flags differ for {users:,} users"
    result = differing if proof.differences else proof.problem or proof.note or differing
    yield f"token {proof.name} ({proof.environment}): {result}"
    if proof.left_out:
        yield f"  left out: {name_some_flags(proof.left_out)}"
    for each in proof.differences[:SHOWN]:
        yield f"  {each.flag}: {each.users:,} of {each.of:,}: {each.reason}"
        if each.example:
            yield f"    {each.example}"
    if proof.spellings:
        yield f"  {len(proof.spellings):,} flags are written otherwise and give the same results:"
    for each in proof.spellings[:SHOWN]:
        yield f"  {each.flag}: {each.reason}"


def summarize_proofs(proofs: Sequence[TokenProof]) -> str:
    if not proofs:
        return "There is no SDK token to compare with."
    if unequal := sum(not proof.is_equal for proof in proofs):
        return f"{unequal} of {len(proofs)} tokens get something else here."
    left_out = {name for proof in proofs for name in proof.left_out}
    but = f", but for what is left out: {name_some_flags(sorted(left_out))}" if left_out else ""
    return f"All {len(proofs)} tokens get the same here{but}."

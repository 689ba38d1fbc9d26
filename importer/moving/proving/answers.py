"""SDK answers of an installation, normalized for both sides of a move, and as a state to compare."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from io import BytesIO
from typing import Any

import orjson
from django.db import DEFAULT_DB_ALIAS
from pydantic import Field
from rest_framework import serializers

from flagadmin.core.errors import pluralize
from flagadmin.core.http.fields import Body as RequestBody
from groups.access import Caller, Permission
from groups.models import ApiToken
from importer.moving.reading.shapes import Constraint, Shape, Text, read_shape
from importer.moving.reading.source import FOR_REQUESTS, Source
from importer.moving.report import Report, name_some_flags
from importer.moving.writing.keeping import SYSTEM
from playground.comparison.states import Body, Scope, State, StateKind, StoredFlags
from playground.engine.context import Context, format_time
from playground.engine.operators import OPERATORS
from playground.engine.snapshot import Snapshot
from playground.queries import list_known_fields
from playground.user_runs.file import MAX_HELD_CELLS, UserFile
from projects.definitions import Definitions
from projects.revision import read_revisions
from sdk.features.api import FeaturesQuery, get_answer
from sdk.headers import HEADER

PATH = "/api/client/features"
SPEC = {HEADER: "5.2.0"}
Flags = dict[str, dict[str, Any]]


class Client(Shape):
    """An answer for SDKs. Its flags are validated as they are read."""

    features: list[dict[str, Any]]
    segments: list[dict[str, Any]] = []


class _Parent(Shape):
    feature: str
    enabled: bool = True
    variants: list[str] = []


class _Variant(Shape):
    name: str
    weight: int | float
    stickiness: str = "default"
    payload: dict[str, Any] | None = None
    overrides: list[dict[str, Any]] = []


class _Strategy(Shape):
    name: str
    parameters: dict[str, Text] = {}
    constraints: list[Constraint] = []
    segments: list[int] = []
    variants: list[_Variant] = []


class _ClientFlag(Shape):
    """The parts of a flag that SDKs evaluate."""

    name: str
    project: str
    enabled: bool
    impression_data: bool = Field(False, alias="impressionData")
    strategies: list[_Strategy] = []
    variants: list[_Variant] = []
    dependencies: list[_Parent] = []


class _Segment(Shape):
    id: int
    name: str
    constraints: list[Constraint]


def read_flags(address: str, answer: Client) -> Flags:
    """The flags by name in a normal form, with their segments in place of ids, which differ between servers."""
    segments = {each.id: each for each in read_shape(address, PATH, answer.segments, list[_Segment])}
    written = {
        key: {"name": each.name, "constraints": _make_constraints(each.constraints)}
        for key, each in segments.items()
    }
    flags: Flags = {}
    for flag in read_shape(address, PATH, answer.features, list[_ClientFlag]):
        document = flag.model_dump(exclude={"strategies", "dependencies"})
        document["strategies"] = [
            {
                **strategy.model_dump(exclude={"constraints", "segments"}),
                "constraints": _make_constraints(strategy.constraints),
                "segments": [
                    written.get(key, {"name": "", "constraints": []})
                    for key in sort_by_name(strategy, written)
                ],
            }
            for strategy in flag.strategies
        ]
        # The reference repeats a parent for each of its environments.
        parents = {orjson.dumps(parent.model_dump()): parent.model_dump() for parent in flag.dependencies}
        document["dependencies"] = [parents[key] for key in sorted(parents)]
        flags[flag.name] = document
    return flags


def read_flags_here(token: ApiToken) -> Flags:
    """Reads the flags that the token gets here."""
    body = get_answer(token, FeaturesQuery(knows_segments=True), using=DEFAULT_DB_ALIAS).body
    return read_flags("", Client.model_validate_json(body))


def sort_by_name(strategy: _Strategy, written: Mapping[int, Mapping[str, Any]]) -> list[int]:
    """All of a strategy's segments must hold, in any order."""
    return sorted(strategy.segments, key=lambda key: str(written.get(key, {}).get("name", "")))


def _make_constraints(constraints: Iterable[Constraint]) -> list[dict[str, Any]]:
    """Drops members that the operator does not use."""
    documents = []
    for constraint in constraints:
        document = constraint.model_dump()
        unread = "value" if _takes_list(constraint.operator) else "values"
        document[unread] = None if unread == "value" else []
        documents.append(document)
    return documents


def _takes_list(operator: str) -> bool:
    known = OPERATORS.get(operator)
    return known is None or known.takes_list


def make_definitions(flags: Flags) -> Definitions:
    """The flags for the engine. Segments get ids by content, equal in both installations."""
    segments: dict[bytes, tuple[int, Any]] = {}
    listed: list[Any] = []
    for name in sorted(flags):
        flag = flags[name]
        strategies = []
        for place, strategy in enumerate(flag["strategies"]):
            ids = []
            for segment in strategy["segments"]:
                key = orjson.dumps(segment)
                number = int.from_bytes(sha256(key).digest()[:6])
                segments[key] = number, segment | {"id": number}
                ids.append(number)
            strategies.append(
                strategy | {"segments": ids, "sortOrder": place, "title": None, "disabled": False}
            )
        listed.append(flag | {"strategies": strategies, "stale": False})
    return Definitions(listed, dict(segments.values()))


class RemoteBody(RequestBody):
    address = serializers.CharField(max_length=500, help_text="For example `https://unleash.example.com`.")
    token = serializers.CharField(
        max_length=500,
        help_text="A backend token of that server, for the environment to compare. It is not stored.",
    )


@dataclass(frozen=True)
class RemoteState(State):
    """``definitions`` are all flags that the token gets. Flags of other projects are left out."""

    definitions: Definitions
    left_out: int = 0
    names: frozenset[str] = field(default_factory=frozenset)

    def within(self, scope: Scope, path: str) -> State:
        flags = [flag for flag in self.definitions.flags if flag["project"] in scope.projects]
        left_out = len(self.definitions.flags) - len(flags)
        kept = Definitions(flags, self.definitions.segments)
        return replace(
            self, definitions=kept, left_out=left_out, names=frozenset(flag["name"] for flag in flags)
        )

    def notes(self) -> Sequence[str]:
        if not self.left_out:
            return ()
        return [f"{pluralize(self.left_out, 'flag')} there of projects that are not compared, or not here."]

    def prepare(self, stored: StoredFlags) -> None:
        stored.compile()

    def compile(self, stored: StoredFlags) -> Snapshot:
        return stored.replace(self.names.union(stored.snapshot.names), self.definitions)

    def apply(self, stored: Definitions, names: Collection[str]) -> Definitions:
        flags = self.definitions.select(names).flags
        return Definitions(flags, self.definitions.segments)


def _read_remote(caller: Caller, body: Body) -> RemoteState:
    """Raises NoAccess, and SourceError if the server cannot be read."""
    caller.check(Permission.ADMIN)
    remote = body["remote"]
    source = Source(remote["address"], remote["token"], limits=FOR_REQUESTS)
    answer = read_shape(source.address, PATH, source.get(PATH, headers=SPEC), Client)
    flags = read_flags(source.address, answer)
    return RemoteState(body["environment"], make_definitions(flags), url=source.address)


def _make_field() -> RemoteBody:
    return RemoteBody(
        required=False,
        help_text="What an SDK token gets from another server that speaks Unleash's API. For admins. The address is "
        "checked as those of integrations are.",
    )


REMOTE = StateKind("remote", _make_field, _read_remote)


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

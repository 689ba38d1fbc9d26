"""SDK answers of an installation, normalized for both sides of a move, and as a state to compare."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import orjson
from django.db import DEFAULT_DB_ALIAS
from pydantic import Field
from rest_framework import serializers

from flagadmin.core.http.fields import Body as RequestBody
from flagadmin.core.wording import pluralize
from groups.access import Caller
from groups.models import ApiToken
from groups.permissions import Permission
from importer.moving.reading.shapes import Constraint, Shape, Text, read_shape
from importer.moving.reading.source import FOR_REQUESTS, Source
from playground.comparison.kinds import Body, StateKind
from playground.comparison.states import Scope, State, StoredFlags
from playground.engine.operators import OPERATORS
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions
from sdk.features.cache import FeaturesQuery, get_answer
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
    return known is None or known.takes == "values"


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

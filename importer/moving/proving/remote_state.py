"""The flags that an SDK token gets from another installation, as a state to compare."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from rest_framework import serializers

from flagadmin.core.http.fields import Body as RequestBody
from groups.access import Caller
from groups.permissions import Permission
from importer.moving.proving.answers import PATH, SPEC, Client, make_definitions, read_flags
from importer.moving.reading.shapes import read_shape
from importer.moving.reading.source import FOR_REQUESTS, Source
from playground.comparison.kinds import Body, StateKind
from playground.comparison.states import Scope, State, StoredFlags
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions


class RemoteBody(RequestBody):
    address = serializers.CharField(max_length=500, help_text="For example `https://unleash.example.com`.")
    token = serializers.CharField(
        max_length=500,
        help_text="A backend token of that server, for the environment to compare. It is not stored.",
    )


@dataclass(frozen=True)
class RemoteState(State):
    """``definitions`` are all flags that the token gets. Those of other projects than are compared are left out."""

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
        return [f"{self.left_out:,} flags there are of projects that are not compared, or not here."]

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

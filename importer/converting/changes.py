"""Counts the users who change because products hash differently: each flag before and after its conversion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, cast

from django.utils import timezone

from flagadmin.core.document import Document
from importer.converting.conditions import Unsupported
from importer.converting.convert import Conversion, ConvertedFlag
from importer.converting.flags import Flag
from importer.converting.strategies import Choice, Strategies
from playground.comparison.contexts import make_context
from playground.comparison.users import make_users
from playground.comparison.who_changes import Budget, Contexts, WhoChanges, choose_number_of_users
from playground.engine.context import Context, format_time
from playground.engine.definitions import FlagDefinition, SegmentDefinition, StrategyDefinition
from playground.engine.snapshot import Snapshot
from playground.response.snapshot import compile_playground
from playground.user_runs.file import MAX_HELD_CELLS, UserFile
from projects.definitions import Definitions
from projects.rules import Limits

MAX_COUNTED = 1_000
"""Flags with percentages whose users are counted, the first ones in the file."""
UNBOUNDED = replace(
    Limits(),
    strategies=10_000,
    constraints=10_000,
    constraint_values=10**6,
    segment_values=10**6,
    segments=100,
)
BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Users:
    """The counted users by context field. All ``identifiers`` are kept if today's users are."""

    contexts: Sequence[Context]
    identifiers: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, contexts: Sequence[Context], fields: Iterable[str]) -> Users:
        values = {field: [context.fields.get(field) for context in contexts] for field in fields}
        return cls(
            contexts,
            {
                field: list(dict.fromkeys(text for text in texts if text is not None))
                for field, texts in values.items()
            },
        )


@dataclass(frozen=True, slots=True)
class Change:
    """The number of ``users``, the number whose result changes, and the flag's share before and after."""

    users: int
    changed: int
    before: float
    after: float

    def document(self) -> Document:
        return {
            "users": self.users,
            "changed": self.changed,
            "onBefore": round(self.before, 4),
            "onAfter": round(self.after, 4),
        }


def describe_change(change: Mapping[str, Any], file_name: str) -> str:
    """``change``: its document. ``file_name``: the users' file, empty if they are generated."""
    whose = f"users of {file_name}" if file_name else "generated users"
    before, after = change["onBefore"], change["onAfter"]
    shares = f"; on for {before:.1%} of them before, {after:.1%} after" if min(before, after) < 1 else ""
    return f"{change['changed']:,} of {change['users']:,} {whose} change{shares}."


def read_users(content: bytes) -> Users:
    """The users of a CSV file. Raises ValidationError with the row and column of each problem."""
    columns = UserFile(BytesIO(content)).fields
    UserFile(BytesIO(content)).check(frozenset(columns), cells=MAX_HELD_CELLS)
    now = format_time(timezone.now())
    return Users.of([make_context(user, now) for _, user in UserFile(BytesIO(content)).users()], columns)


def generate_users(conversion: Conversion, count: int) -> Users:
    """Users with the values named by flags with percentages."""
    flags = [flag for flag in conversion.flags if flag.has_percentages][:MAX_COUNTED]
    states = [make_definitions(flags, conversion.segments)]
    contexts = make_users(states, now=timezone.now(), count=count)
    return Users.of(contexts, {split.field for flag in flags for split in flag.source.splits})


def count_changes(conversion: Conversion, users: Users | None = None) -> dict[str, Change]:
    """Counts the users whose result changes, for each flag with percentages. Raises ValidationError for too many."""
    flags = [flag for flag in conversion.flags if flag.has_percentages and flag.strategies][:MAX_COUNTED]
    if not flags:
        return {}
    number = choose_number_of_users(len(flags))
    users = users or generate_users(conversion, number)
    step = max(1, len(users.contexts) // number)
    contexts = users.contexts[::step][:number] if step > 1 else users.contexts
    before = _as_in_source(flags, Users.of(contexts, users.identifiers))
    after = _compile(make_definitions(flags, conversion.segments))
    names = before.names
    who = WhoChanges(before, after, Contexts(contexts), names, budget=BUDGET, always=names)
    return {flag.name: Change(len(contexts), flag.users, flag.on_before, flag.on_after) for flag in who.flags}


def _as_in_source(flags: Iterable[ConvertedFlag], users: Users) -> Snapshot:
    """The flags with segments of the users selected by the source's hash."""
    writer = Strategies(UNBOUNDED)
    converted = []
    for flag in flags:
        source = flag.source
        own = Flag(source.name, "", source.rules, source.enabled, source.values, source.parents)
        try:
            strategies = writer.make(own, Choice.KEEP, users.identifiers)
        except Unsupported:
            continue
        converted.append(replace(flag, strategies=strategies))
    return _compile(make_definitions(converted, writer.segments))


def make_definitions(
    flags: Iterable[ConvertedFlag], segments: Mapping[str, tuple[int, list[Document]]]
) -> Definitions:
    """The flags for the engine, including parents that are among them."""
    flags = list(flags)
    names = {flag.name for flag in flags}
    definitions: list[FlagDefinition] = [
        {
            "name": flag.name,
            "project": "",
            "enabled": flag.is_enabled,
            "impression_data": False,
            "stale": False,
            "strategies": [
                cast("StrategyDefinition", strategy | {"id": f"{flag.name} {number}"})
                for number, strategy in enumerate(flag.strategies)
            ],
            "variants": [],
            "dependencies": [
                {"feature": parent.flag, "enabled": parent.enabled, "variants": list(parent.variants)}
                for parent in flag.source.parents
                if parent.flag in names
            ],
        }
        for flag in flags
    ]
    known: dict[int, SegmentDefinition] = {
        number: cast("SegmentDefinition", {"id": number, "name": name, "constraints": constraints})
        for name, (number, constraints) in segments.items()
    }
    return Definitions.of(sorted(definitions, key=lambda flag: flag["name"]), known)


def _compile(definitions: Definitions) -> Snapshot:
    return compile_playground(definitions.flags, definitions.segments, environment="").snapshot

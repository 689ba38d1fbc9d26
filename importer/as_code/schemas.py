"""Types of the files of flags as code (the source of their JSON Schemas), and of the directory as sent."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from importer.body.schema_errors import Boolean, Integer, Text, validate_shape
from importer.body.schemas import (
    Constraint,
    FeatureVariant,
    Inner,
    LegalValue,
    Link,
    Parent,
    PayloadSchema,
    StrategyVariant,
    Texts,
    parse_bulk_json,
    strict,
)
from importer.bulk_work import bulk_work

MAX_PROJECTS = 100
MAX_FLAGS = 50_000


@strict
class StrategyEntry(TypedDict, total=False):
    """A strategy. ``segments`` are names."""

    name: Required[Text]
    title: Text | None
    disabled: Boolean
    parameters: dict[str, Text]
    constraints: Inner[Constraint]
    segments: Texts
    variants: Inner[StrategyVariant]


@strict
class EnvironmentEntry(TypedDict, total=False):
    """A flag's settings in an environment: all of its strategies, in their order, and all of its variants."""

    enabled: Required[Boolean]
    strategies: Inner[StrategyEntry]
    variants: Inner[FeatureVariant]


@strict
class FlagFile(TypedDict, total=False):
    """A flag. Omitted members are empty, but omitted environments stay as they are."""

    name: Required[Text]
    type: Text
    description: Text | None
    stale: Boolean
    impressionData: Boolean
    tags: Annotated[Texts, Field(description="Each as type:value.")]
    links: Inner[Link]
    dependencies: Annotated[Inner[Parent], Field(description="Parents: the flag is on only if they are.")]
    payloadSchema: Annotated[PayloadSchema, Field(description="The JSON Schema of its JSON payloads.")]
    environments: dict[str, EnvironmentEntry]


@strict
class SegmentFile(TypedDict, total=False):
    """A segment. Without ``project``, all projects can use it."""

    name: Required[Text]
    description: Text | None
    project: Text | None
    constraints: Required[Inner[Constraint]]


@strict
class ContextFieldFile(TypedDict, total=False):
    """A context field. Without ``project``, it is of all projects."""

    name: Required[Text]
    description: Text | None
    project: Text | None
    stickiness: Boolean
    sortOrder: Integer
    legalValues: Inner[LegalValue]


@strict
class DirectoryFile(TypedDict, total=False):
    """flagadmin.yaml: the projects whose flags the directory has."""

    projects: Required[Annotated[Texts, Field(min_length=1, max_length=MAX_PROJECTS)]]
    shared: Annotated[
        Boolean,
        Field(description="Whether it also has segments and context fields of all projects. Default true."),
    ]


SCHEMAS: Mapping[str, TypeAdapter[Any]] = {
    "flag": TypeAdapter(FlagFile),
    "segment": TypeAdapter(SegmentFile),
    "context-field": TypeAdapter(ContextFieldFile),
    "flagadmin": TypeAdapter(DirectoryFile),
}


def make_json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file."""
    schema = SCHEMAS[name].json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@strict
class FlagEntry(TypedDict):
    project: Text
    flag: FlagFile


@strict
class ArchiveEntry(TypedDict):
    project: Text
    name: Text


@strict
class DirectoryBody(TypedDict, total=False):
    flags: list[FlagEntry]
    segments: list[SegmentFile]
    contextFields: list[ContextFieldFile]
    archive: list[ArchiveEntry]
    fingerprint: Text
    skipChangeRequests: Boolean


_BODY: TypeAdapter[DirectoryBody] = TypeAdapter(DirectoryBody)


@dataclass(frozen=True, slots=True)
class Directory:
    """The state that a directory describes. ``archive`` are flags to archive, by project.

    ``same`` are the positions of flags that are stored exactly like this and need no action.
    """

    flags: list[FlagEntry]
    segments: list[SegmentFile]
    fields: list[ContextFieldFile]
    archive: dict[str, list[str]]
    fingerprint: str = ""
    skips_requests: bool = False
    same: frozenset[int] = frozenset()

    @property
    def projects(self) -> list[str]:
        return sorted({entry["project"] for entry in self.flags} | self.archive.keys())

    def list_flags_of(self, project: str) -> list[tuple[int, FlagFile]]:
        """The project's flags with their positions in the body, except unchanged ones."""
        return [
            (index, entry["flag"])
            for index, entry in enumerate(self.flags)
            if entry["project"] == project and index not in self.same
        ]

    def find_same(self, stored: Mapping[tuple[str, str], Any]) -> frozenset[int]:
        """The positions of flags that are stored exactly like this. Excludes a flag that is listed twice."""
        listed = Counter(entry["flag"]["name"] for entry in self.flags)
        return frozenset(
            index
            for index, entry in enumerate(self.flags)
            if listed[entry["flag"]["name"]] == 1
            and stored.get((entry["project"], entry["flag"]["name"])) == entry["flag"]
        )

    @property
    def is_stored(self) -> bool:
        """Whether there is nothing to do."""
        return len(self.same) == len(self.flags) and not (self.segments or self.fields or self.archive)


@bulk_work
def parse_directory(content: bytes) -> Directory:
    """Parses a directory. Raises ValidationError with every error and its JSON path ("flags[3].flag.name")."""
    raw = parse_bulk_json(content) if content.strip() else {}
    body = validate_shape(_BODY, raw, DirectoryBody)
    archive: dict[str, list[str]] = {}
    for entry in body.get("archive", ()):
        archive.setdefault(entry["project"], []).append(entry["name"])
    return Directory(
        body.get("flags", []),
        body.get("segments", []),
        body.get("contextFields", []),
        archive,
        body.get("fingerprint", ""),
        body.get("skipChangeRequests", False),
    )

"""Types and parser of the import body. Does not access the database.

The types follow the API specification ("Exported feature (import data)" and the sections after it), plus
members that the reference also exports (``links``, ``color``, ``project`` of a context field) and two
extensions: ``constraints`` of a segment, ``savedContexts`` and ``payloadSchemas``. All errors of a body are reported
at once.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, NotRequired, Required, TypeVar

import orjson
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationInfo, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from flagadmin.core import errors
from flagadmin.core.change_checks.comments import tidy_comment
from flagadmin.core.http.json_bodies import BY_HAND, Bounds, check_values, list_double_names, parse_json
from importer.body.schema_errors import (
    EXPECTED_TYPE,
    MAX_SCHEMAS,
    Boolean,
    Color,
    Integer,
    Moment,
    Number,
    Share,
    Text,
    Weight,
    make_choice,
    validate_by_parts,
)
from importer.bulk_work import bulk_work
from playground.engine.operators import OPERATORS
from projects.flags.payloads.rules import schema_problems
from projects.strategies.rules import PAYLOAD_TYPES, WEIGHT_TYPES

T = TypeVar("T")
# Nested lists report only their first error, so that the number of errors does not grow with the size of an
# entry.
Inner = Annotated[list[T], Field(fail_fast=True)]
Texts = Inner[Text]
Numbers = Inner[Number]
PayloadType = Annotated[str, make_choice(*PAYLOAD_TYPES)]
WeightType = Annotated[str, make_choice(*WEIGHT_TYPES)]
Operator = Annotated[str, make_choice(*OPERATORS)]
Stage = Annotated[str, make_choice("initial", "pre-live", "live", "completed", "archived")]
strict = with_config(ConfigDict(extra="forbid"))

MAX_ENTRIES = 2_000_000
"""The maximum number of objects in all lists of a body together, which bounds the memory for plans and reports."""
BOUNDS = Bounds(values=20_000_000, containers=2 * MAX_ENTRIES)


@strict
class Payload(TypedDict):
    type: PayloadType
    value: Text


@strict
class Override(TypedDict):
    contextName: Text
    values: Texts


@strict
class StrategyVariant(TypedDict):
    name: Text
    weight: Weight
    weightType: WeightType
    stickiness: Text
    payload: NotRequired[Payload]


@strict
class FeatureVariant(TypedDict):
    name: Text
    weight: Share
    weightType: NotRequired[WeightType]
    stickiness: NotRequired[Text]
    payload: NotRequired[Payload]
    overrides: NotRequired[Inner[Override]]


@strict
class Constraint(TypedDict):
    contextName: Text
    operator: Operator
    caseInsensitive: NotRequired[Boolean]
    inverted: NotRequired[Boolean]
    values: NotRequired[Texts]
    value: NotRequired[Text]


@strict
class Strategy(TypedDict, total=False):
    id: Text
    name: Required[Text]
    title: Text | None
    disabled: Boolean | None
    featureName: Text
    sortOrder: Number
    segments: Numbers
    constraints: Inner[Constraint]
    variants: Inner[StrategyVariant]
    parameters: dict[str, Text]


@strict
class FeatureEnvironment(TypedDict, total=False):
    name: Required[Text]
    featureName: Text
    environment: Text
    type: Text
    enabled: Required[Boolean]
    sortOrder: Number
    variantCount: Number
    strategies: Inner[Strategy]
    variants: Inner[FeatureVariant]
    lastSeenAt: Moment | None
    hasStrategies: Boolean
    hasEnabledStrategies: Boolean


@strict
class Tag(TypedDict):
    value: Text
    type: Text


@strict
class Lifecycle(TypedDict):
    stage: Stage
    enteredStageAt: Moment


@strict
class Parent(TypedDict):
    feature: Text
    enabled: NotRequired[Boolean]
    variants: NotRequired[Texts]


@strict
class Link(TypedDict):
    id: NotRequired[Text]
    url: Text
    title: NotRequired[Text | None]


@strict
class Feature(TypedDict, total=False):
    name: Required[Text]
    type: Text
    description: Text | None
    archived: Boolean
    project: Text
    enabled: Boolean
    stale: Boolean
    favorite: Boolean
    impressionData: Boolean
    createdAt: Moment | None
    archivedAt: Moment | None
    lastSeenAt: Moment | None
    environments: Inner[FeatureEnvironment]
    variants: Inner[FeatureVariant]
    strategies: Inner[Strategy]
    tags: Inner[Tag] | None
    children: Texts
    lifecycle: Lifecycle
    dependencies: Inner[Parent]
    links: Inner[Link]


@strict
class LegalValue(TypedDict):
    value: Text
    description: NotRequired[Text]


@strict
class ContextField(TypedDict, total=False):
    name: Required[Text]
    description: Text | None
    stickiness: Boolean
    sortOrder: Integer
    createdAt: Moment | None
    usedInFeatures: Integer | None
    usedInProjects: Integer | None
    legalValues: Inner[LegalValue]
    project: Text


@strict
class FeatureTag(TypedDict, total=False):
    featureName: Required[Text]
    tagType: Text
    tagValue: Text
    type: Text
    value: Text
    createdByUserId: Number | None


@strict
class Segment(TypedDict):
    id: Number
    name: Text
    constraints: NotRequired[Inner[Constraint]]


@strict
class TagType(TypedDict, total=False):
    name: Required[Text]
    description: Text
    icon: Text | None
    color: Color | None


@strict
class Dependencies(TypedDict):
    feature: Text
    dependencies: Inner[Parent]


@strict
class Links(TypedDict):
    feature: Text
    links: Inner[Link]


def _check_payload_schema(schema: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """Takes up to 1.6 s for each 64 kB. Bodies are parsed before a project is locked."""
    context: Any = info.context
    with suppress(orjson.JSONEncodeError):  # nested too deep: one of its problems
        context["left"] -= len(orjson.dumps(schema))
    if context["left"] < 0:
        expected = f"one of payload schemas with at most {MAX_SCHEMAS:,} bytes together"
        raise PydanticCustomError(EXPECTED_TYPE, "{expected}", {"expected": expected})
    if problem := next(schema_problems(schema), None):
        expected = f"a JSON Schema that is supported ({problem})"
        raise PydanticCustomError(EXPECTED_TYPE, "{expected}", {"expected": expected})
    return schema


PayloadSchema = Annotated[dict[str, Any], AfterValidator(_check_payload_schema)]


@strict
class FeaturePayloadSchema(TypedDict):
    feature: Text
    schema: PayloadSchema | None


@strict
class Expectation(TypedDict):
    flag: Text
    enabled: Boolean
    variant: NotRequired[Text | None]
    payload: NotRequired[Payload | None]


@strict
class SavedContext(TypedDict):
    name: Text
    context: dict[str, Any]
    project: NotRequired[Text | None]
    note: NotRequired[Text | None]
    expectations: NotRequired[Inner[Expectation]]


@strict
class Data(TypedDict):
    features: list[Feature]
    featureStrategies: list[Strategy]
    featureEnvironments: NotRequired[list[FeatureEnvironment]]
    contextFields: NotRequired[list[ContextField]]
    featureTags: NotRequired[list[FeatureTag]]
    segments: NotRequired[list[Segment]]
    tagTypes: list[TagType]
    dependencies: NotRequired[list[Dependencies]]
    links: NotRequired[list[Links]]
    savedContexts: NotRequired[list[SavedContext]]
    payloadSchemas: NotRequired[list[FeaturePayloadSchema]]


@strict
class BodyDocument(TypedDict):
    project: Text
    environment: Text
    data: Data
    comment: NotRequired[Text | None]


@dataclass(frozen=True, slots=True)
class Body:
    """A validated import body.

    With ``parts`` (of :data:`importer.promotion.PARTS`), only these of its flags change, and only in the environment.
    """

    project: str
    environment: str
    data: Data
    parts: frozenset[str] | None = None
    comment: str = ""
    notes: tuple[str, ...] = ()
    """Notes about the file itself."""


STATE_FILE = (
    "This is a state file of Unleash 4 or earlier (/api/admin/state/export): it has all projects and environments in "
    "another form. Import it into an Unleash server of that version, and move from there with the command move or the "
    "page Move from Unleash; or export one environment there (POST /api/admin/features-batch/export) and import that."
)
_BODY: TypeAdapter[BodyDocument] = TypeAdapter(BodyDocument)


@bulk_work
def parse_body(body: bytes, *, project: str | None = None, environment: str | None = None) -> Body:
    """The body of an import or validate request. ``project`` and ``environment`` override those in the body.

    Raises ValidationError with every error and its JSON path ("data.features[3].name").
    """
    if not body.strip():
        body = b"{}"
    raw = parse_bulk_json(body)
    read = read_body(raw, project=project, environment=environment)
    return replace(read, notes=tuple(list_double_names(body, raw))) if len(body) <= BY_HAND else read


def parse_bulk_json(body: bytes) -> Any:
    """Parses JSON after counting the values of a large body. Raises ValidationError."""
    check_values(body, BOUNDS)
    return parse_json(body)


@bulk_work
def read_body(raw: Any, *, project: str | None = None, environment: str | None = None) -> Body:
    """Validates a parsed document.

    If a target is given, an export file (without ``data``) is accepted too.
    """
    check_state_file(raw)
    if isinstance(raw, dict) and (project or environment):
        raw = raw if "data" in raw else {"data": raw}
        target = {"project": project, "environment": environment}
        raw = {**raw, **{name: value for name, value in target.items() if value}}
    _check_size(raw)
    document = validate_by_parts(_BODY, raw, BodyDocument)
    comment = tidy_comment(document.get("comment") or "")
    return Body(document["project"], document["environment"], document["data"], comment=comment)


def check_state_file(raw: Any) -> None:
    """Raises ValidationError for an export of a whole server, which Unleash 4 writes as JSON or YAML."""
    if isinstance(raw, dict) and _is_state_file(raw):
        raise errors.ValidationError(STATE_FILE)


def _is_state_file(raw: Mapping[str, Any]) -> bool:
    features = raw.get("features")
    if "data" in raw or not isinstance(features, list) or not isinstance(raw.get("version"), int):
        return False
    return bool({"strategies", "projects", "environments"} & raw.keys()) or any(
        isinstance(each, dict) and "strategies" in each and "environments" not in each for each in features
    )


def _check_size(raw: Any) -> None:
    data = raw.get("data") if isinstance(raw, dict) else None
    lists = data.values() if isinstance(data, dict) else ()
    entries = sum(len(entry) for entry in lists if isinstance(entry, list))
    if entries > MAX_ENTRIES:
        raise errors.ValidationError.at("data", f"must have at most {MAX_ENTRIES:,} entries, not {entries:,}")

"""Required members of Unleash's answers and tables about releases. Other members are ignored."""

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from importer.moving.reading.source import Source, SourceError
from projects.text_values import format_scalar, is_scalar

V = TypeVar("V")
TRIED = "8"
MAJORS = ("6", "7", TRIED)
"""Versions that answer in these shapes, according to their documentation."""
Text = Annotated[str, BeforeValidator(lambda value: format_scalar(value) if is_scalar(value) else value)]
"""Numbers and booleans are converted as they would be stored here."""


class Shape(BaseModel):
    """The required members of an answer. Ignores others; null counts as missing."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and None in raw.values():
            return {member: value for member, value in raw.items() if value is not None}
        return raw


class SourceEnvironment(Shape):
    name: str
    type: str = "production"
    enabled: bool = True
    sort_order: int = Field(9999, alias="sortOrder")
    approvals: int | None = Field(None, alias="requiredApprovals")


class SourceAddon(Shape):
    id: int
    provider: str
    description: str | None = None
    parameters: dict[str, Text] = {}
    events: list[str] = []
    projects: list[str] = []
    environments: list[str] = []


class SourceBanner(Shape):
    message: str = ""


class SourceFlagType(Shape):
    id: str
    lifetime_days: int | None = Field(None, alias="lifetimeDays", ge=0, le=36_500)


class SourcePerson(Shape):
    id: int
    username: str | None = None
    name: str | None = None
    email: str | None = None
    root_role: int | None = Field(None, alias="rootRole")

    @property
    def label(self) -> str:
        return self.email or self.username or str(self.id)


class SourceField(Shape):
    name: str
    description: str | None = None
    stickiness: bool = False
    sort_order: int = Field(10, alias="sortOrder")
    legal_values: list[dict[str, Any]] = Field([], alias="legalValues")


class Constraint(Shape):
    contextName: str
    operator: str
    values: list[Text] = []
    value: Text | None = None
    inverted: bool = False
    caseInsensitive: bool = False


class SourceSegment(Shape):
    id: int
    name: str
    description: str | None = None
    project: str | None = None
    constraints: list[Constraint]


class SourceStrategyType(Shape):
    name: str
    title: str | None = None
    description: str | None = None
    editable: bool
    deprecated: bool = False
    parameters: list[dict[str, Any]]


class SourceTagType(Shape):
    name: str
    description: str | None = None
    icon: str | None = None
    color: str | None = None


class SourceTag(Shape):
    type: str
    value: Text


class SourceSettings(Shape):
    """The settings of the whole server."""

    version: str | None = None
    origins: list[str] = Field(["*"], alias="frontendApiOrigins")


class Naming(Shape):
    pattern: str | None = None
    example: str | None = None
    description: str | None = None


class DefaultStrategy(Shape):
    model_config = ConfigDict(extra="allow")

    name: str
    parameters: dict[str, Any] = {}
    constraints: list[Constraint] = []
    segments: list[int] = []
    variants: list[dict[str, Any]] = []


class UsedEnvironment(Shape):
    environment: str
    default_strategy: DefaultStrategy | None = Field(None, alias="defaultStrategy")


class LinkTemplate(Shape):
    title: str | None = None
    url: str = Field(alias="urlTemplate")


class Overview(Shape):
    name: str
    description: str | None = None
    mode: Literal["open", "protected", "private"] = "open"
    default_stickiness: str = Field("default", alias="defaultStickiness")
    flag_limit: int | None = Field(None, alias="featureLimit")
    naming: Naming | None = Field(None, alias="featureNaming")
    link_templates: list[LinkTemplate] = Field([], alias="linkTemplates")
    environments: list[UsedEnvironment]


class FlagEnvironment(SourceEnvironment):
    """A flag in an environment: ``enabled`` is its switch there."""

    variants: int = Field(0, alias="variantCount")
    seen_at: datetime | None = Field(None, alias="lastSeenAt")


class SourceFlag(Shape):
    name: str
    created_at: datetime | None = Field(None, alias="createdAt")
    archived_at: datetime | None = Field(None, alias="archivedAt")
    environments: list[FlagEnvironment] = []


class FlagList(Shape):
    features: list[SourceFlag]


class FlagPage(FlagList):
    total: int


class ListedProject(Shape):
    id: str


class Statistics(Shape):
    """The counts of existing objects, including those that this edition does not list. None if unknown."""

    projects: int | None = None
    flags: int | None = Field(None, alias="featureToggles")
    archived: int | None = Field(None, alias="archivedFeatureToggles")


class LoggedEvent(Shape):
    project: str = ""


class EventList(Shape):
    events: list[LoggedEvent] = []


class SourceToken(Shape):
    secret: str = Field("", validation_alias=AliasChoices("secret", "identifier"))
    name: str = Field("", alias="tokenName")
    type: str
    environment: str | None = None
    projects: list[str] = []
    expires_at: str | None = Field(None, alias="expiresAt")
    alias: str | None = None
    secure: bool = False
    digest: str | None = Field(None, exclude=True)
    """SHA-256 of the secret, if known from the database. Then ``secret`` is only its start."""


class OrderedStrategy(Shape):
    id: str
    sort_order: int | None = Field(None, alias="sortOrder")


class FlagInEnvironment(Shape):
    name: str
    strategies: list[OrderedStrategy] = []


class FlagDetails(Shape):
    environments: list[FlagInEnvironment]


class ExportedFlag(Shape):
    name: str
    project: str
    archived: bool = False


class ExportedPart(Shape):
    id: str = ""
    feature: str = Field(alias="featureName")


class ExportedSegment(Shape):
    id: int
    name: str


class Export(Shape):
    """The parts of an export that are read here. Imports validate the rest."""

    features: list[ExportedFlag]
    strategies: list[ExportedPart] = Field(alias="featureStrategies")
    environments: list[ExportedPart] = Field([], alias="featureEnvironments")
    segments: list[ExportedSegment] = []


def read_shape(address: str, path: str, raw: Any, shape: type[V]) -> V:
    try:
        return TypeAdapter(shape).validate_python(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "its answer"
        raise SourceError(
            f"{address}{path}: {where}: {first['msg']}. Unleash {TRIED} answers otherwise."
        ) from None


def read_list(
    source: Source, path: str, member: str | None, shape: type[V], *, optional: bool = False
) -> list[V]:
    """Reads a list. An ``optional`` one is empty if the server does not have it, or not for this token."""
    raw = source.find(path) if optional else source.get(path)
    if optional and raw is None:
        return []
    if member is not None:
        raw = raw.get(member) if isinstance(raw, dict) else None
    return read_shape(source.address, path, raw, list[shape])  # type: ignore[valid-type]


class MilestoneStrategy(Shape):
    id: str = ""
    milestone_id: str = ""
    """Only in the database, not in the API."""
    strategy_name: str = Field("", validation_alias=AliasChoices("strategyName", "name"))
    title: str = ""
    sort_order: int = Field(0, alias="sortOrder")
    parameters: dict[str, Text] = {}
    constraints: list[Constraint] = []
    variants: list[dict[str, Any]] = []
    segments: list[int] = []


class Transition(Shape):
    """The condition for starting the next milestone."""

    minutes: int = Field(alias="intervalMinutes")


class SourceMilestone(Shape):
    id: str = ""
    name: str
    sort_order: int = Field(0, alias="sortOrder")
    release_plan_definition_id: str = ""
    """Only in the database, not in the API."""
    transition: Transition | None = Field(None, alias="transitionCondition")
    started_at: datetime | None = Field(None, alias="startedAt")
    strategies: list[MilestoneStrategy] = []


class SourceTemplate(Shape):
    """A release template."""

    id: str = ""
    name: str
    description: str = ""
    project: str | None = None
    archived_at: datetime | None = Field(None, alias="archivedAt")
    milestones: list[SourceMilestone] = []


class SourcePlan(SourceTemplate):
    """The release plan of a flag in an environment. The strategies of its active milestone are the flag's."""

    feature_name: str = Field(alias="featureName")
    environment: str
    active_milestone_id: str = Field("", alias="activeMilestoneId")
    release_plan_template_id: str = Field("", alias="releasePlanTemplateId")


class ReleaseRow(SourcePlan):
    """A release template in the database, or a flag's plan, according to ``discriminator``."""

    discriminator: str
    feature_name: str = ""
    environment: str = ""

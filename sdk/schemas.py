"""The request bodies of SDKs. Unknown keys are accepted and ignored."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import reduce
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as PydanticError

from flagadmin.core.errors import Problem, ValidationError, join_path

MAX_COUNT = 2**31 - 1
DEFAULT_INSTANCE = "default"
MAX_WORD_LENGTH = 255  # characters
MAX_TOKENS = 1000
MAX_ENTRIES = 10_000  # in a bulk list, or flags in a report
MAX_VARIANTS = 1000
MAX_LABELS = 20  # per sample of an impact metric


def empty_as(empty: Callable[[], Any]) -> BeforeValidator:
    """Reads null, [] and {} as ``empty()``: Go writes null for an empty map, PHP an array."""
    return BeforeValidator(lambda value: empty() if value in (None, [], {}) else value)


Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD_LENGTH)]
Word = Annotated[str | None, Field(max_length=MAX_WORD_LENGTH)]
StrategyNames = Annotated[
    list[Annotated[str, Field(max_length=MAX_WORD_LENGTH)]], Field(max_length=1000), empty_as(list)
]
Secret = Annotated[str, Field(max_length=1000)]
SeenTokens = Annotated[list[Secret], Field(max_length=MAX_TOKENS), empty_as(list)]
ImpactMetrics = Annotated[list[Any], Field(max_length=200), empty_as(list)]
CountNumber = Annotated[
    int, Field(ge=0, le=MAX_COUNT), BeforeValidator(lambda value: 0 if value is None else value)
]
VariantName = Annotated[str, Field(max_length=MAX_WORD_LENGTH)]
VariantCounts = Annotated[dict[VariantName, CountNumber], Field(max_length=MAX_VARIANTS), empty_as(dict)]


def _add_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Input should be a valid date-time or a number of milliseconds")
    return value


# ISO 8601 (nanoseconds too), or a number of milliseconds since 1970.
Moment = Annotated[datetime, BeforeValidator(_no_boolean), AfterValidator(_add_zone)]
InstanceId = Annotated[Word, AfterValidator(lambda value: value or DEFAULT_INSTANCE)]


class Body(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True, extra="ignore", hide_input_in_errors=True)


class Platform(Body):
    """The SDK's versions and platform, part of every body."""

    sdkVersion: Word = None
    platformName: Word = None
    platformVersion: Word = None
    yggdrasilVersion: Word = None
    specVersion: Word = None
    sdkFlavor: Word = Field(None, description="The SDK that wraps this one, for example a framework's.")
    sdkFlavorVersion: Word = None


class Registration(Platform):
    """The body of /register."""

    appName: Name = Field(description="Application name, as in the SDK's configuration.")
    instanceId: InstanceId = Field(DEFAULT_INSTANCE, description="Instance of the application.")
    started: Moment = Field(description="Start time.")
    interval: float = Field(description="Interval between metrics reports.", allow_inf_nan=False)
    strategies: StrategyNames = Field(description="Supported strategies.")


class ToggleCount(Body):
    """The number of times a flag was on and off, and the counts of its variants."""

    yes: CountNumber = 0
    no: CountNumber = 0
    variants: VariantCounts = Field(default_factory=dict)


class Bucket(Body):
    """The counts of a time interval."""

    start: Moment
    stop: Moment
    toggles: Annotated[dict[str, Annotated[ToggleCount, empty_as(dict)]], empty_as(dict)] = Field(
        description="Counts by flag name.", max_length=MAX_ENTRIES
    )


class Metrics(Platform):
    """The counts that an SDK has taken since its last report."""

    appName: Name = Field(description="Application name, as in the SDK's configuration.")
    instanceId: InstanceId = Field(DEFAULT_INSTANCE, description="Instance of the application.")
    bucket: Annotated[Bucket | None, empty_as(type(None))] = None
    impactMetrics: ImpactMetrics | None = Field(None, description="Counters, gauges and histograms.")


class BulkApplication(Platform):
    """An application behind an edge proxy."""

    appName: Name
    instanceId: InstanceId
    environment: Word = None
    sdkType: Word = None
    strategies: StrategyNames | None = None


class BulkMetric(Body):
    """One flag's count in an application."""

    featureName: Name
    appName: Name
    environment: Word = None
    timestamp: Moment
    yes: CountNumber = 0
    no: CountNumber = 0
    variants: VariantCounts = Field(default_factory=dict)


class BulkMetrics(Body):
    """The metrics that an edge proxy has collected."""

    applications: Annotated[list[BulkApplication], empty_as(list)] = Field(max_length=MAX_ENTRIES)
    metrics: Annotated[list[BulkMetric], empty_as(list)] = Field(max_length=MAX_ENTRIES)
    seenTokens: SeenTokens | None = Field(None, description="Tokens used at the proxy since its last report.")
    impactMetrics: ImpactMetrics | None = Field(None, description="Counters, gauges and histograms.")


class BulkLists(Body):
    """The lists of a /metrics/bulk body. Their entries are validated one by one."""

    applications: Annotated[list[Any], empty_as(list)] = Field(max_length=MAX_ENTRIES)
    metrics: Annotated[list[Any], empty_as(list)] = Field(max_length=MAX_ENTRIES)
    seenTokens: SeenTokens | None = None
    impactMetrics: ImpactMetrics | None = None


class Tokens(Body):
    tokens: list[Secret] = Field(max_length=MAX_TOKENS)


Seconds = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
Fault = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class RelayReport(Body):
    """The state of a relay."""

    id: Annotated[str, StringConstraints(min_length=8, max_length=64, pattern="^[0-9a-zA-Z-]+$")] = Field(
        description="The same for as long as the relay keeps its directory."
    )
    region: Annotated[str, Field(max_length=100)] = ""
    version: Annotated[str, Field(max_length=50)] = ""
    uptimeSeconds: Seconds
    intervalSeconds: Annotated[float, Field(gt=0, le=86_400)] = Field(description="Between two reports.")
    flagsAgeSeconds: Seconds = Field(0, description="Since its oldest flags were last known to be right.")
    secondsAgo: Seconds = Field(0, description="Since it said this, if another relay passes it on.")
    tokens: CountNumber = 0
    clients: CountNumber = 0
    streams: CountNumber = 0
    batchesWaiting: CountNumber = 0
    faults: list[Fault] = Field(default_factory=list, max_length=10)


class RelayReports(Body):
    relays: list[RelayReport] = Field(max_length=1_000)


class ValidToken(Body):
    """A valid token and its projects."""

    token: str
    type: str
    projects: list[str]
    environment: str


class ValidTokens(Body):
    tokens: list[ValidToken]


def read_sdk_header(headers: Mapping[str, str]) -> str:
    """The SDK's name and version in the headers, which are case-insensitive or in lower case."""
    header = headers.get("unleash-sdk") or headers.get("x-unleash-sdk") or ""
    return header if len(header) <= MAX_WORD_LENGTH and header.isprintable() else ""


B = TypeVar("B", bound=BaseModel)


def read(kind: type[B], data: Any) -> B:
    """Validates a body. Raises ValidationError with every problem and its JSON path."""
    try:
        return kind.model_validate(data)
    except PydanticError as error:
        raise ValidationError.of(problems(error)) from None


def read_each(kind: type[B], entries: list[Any], path: str) -> tuple[list[B], list[Problem]]:
    """The valid entries of a list, and the problems of the others."""
    good, wrong = [], []
    for index, entry in enumerate(entries):
        try:
            good.append(kind.model_validate(entry))
        except PydanticError as error:
            wrong += problems(error, f"{path}[{index}]")
    return good, wrong


def read_metrics(data: Any) -> tuple[Metrics, int]:
    """The report without its invalid flags, and their number.

    After a refusal, a client sends the same counts again with its next ones. So a report is accepted in part if it
    has a valid flag and no other problems. Raises ValidationError for all others, with every problem.
    """
    try:
        return Metrics.model_validate(data), 0
    except PydanticError as error:
        places = {detail["loc"][:3] for detail in error.errors(include_url=False, include_context=False)}
        flags = {place[2] for place in places if place[:2] == ("bucket", "toggles") and len(place) == 3}
        if len(flags) < len(places) or not (valid := _leave_out(data["bucket"]["toggles"], flags)):
            raise ValidationError.of(problems(error)) from None
    return Metrics.model_validate(data | {"bucket": data["bucket"] | {"toggles": valid}}), len(flags)


def _leave_out(toggles: dict[str, Any], flags: set[int | str]) -> dict[str, Any]:
    return {name: counts for name, counts in toggles.items() if name not in flags}


def problems(error: PydanticError, path: str = "") -> list[Problem]:
    """Problems such as ``bucket.toggles.my-flag.yes: Input should be greater than or equal to 0``."""
    return [
        Problem(reduce(join_path, detail["loc"], path), _make_message(detail))
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _make_message(detail: Any) -> str:
    if detail["type"] == "model_type":
        return "Input should be an object"
    return str(detail["msg"]).removeprefix("Value error, ")

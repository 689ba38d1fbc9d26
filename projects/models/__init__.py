"""Models of projects and everything in them, one module for each subject."""

from projects.models.applications import (  # isort: split
    Application,
    ApplicationInstance,
    FlagUsage,
    IgnoredReport,
    ImpactOrigin,
    ImpactPoint,
    ImpactSeries,
    ProjectApplication,
    RefusedRequest,
    UnknownFlag,
    UsageDay,
    UsageHour,
    UsageTotal,
)

from projects.models.applications import CountedReport, Relay, SdkVersion
from projects.models.flags import (
    CodeReference,
    CodeReport,
    Dependency,
    FavoriteFlag,
    FavoriteProject,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    FlagLink,
    FlagQuerySet,
    FlagTag,
    FlagType,
    FlagView,
    LifecycleStage,
    PayloadSchema,
)
from projects.models.projects import (
    ChangedFlags,
    Environment,
    OutsideChange,
    Project,
    ProjectEnvironment,
    ProjectRevision,
    Tag,
    TagType,
)
from projects.models.strategies import (
    ContextField,
    ListSource,
    Segment,
    Strategy,
    StrategySegment,
    StrategyType,
)
from projects.models.versions import VERSIONS, UsersChanged, VersionsSince

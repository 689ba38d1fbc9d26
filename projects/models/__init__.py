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
from projects.models.context_fields import ContextField
from projects.models.environments import Environment
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
)
from projects.models.list_sources import ListSource
from projects.models.payload_schemas import PayloadSchema
from projects.models.projects import (
    ChangedFlags,
    OutsideChange,
    Project,
    ProjectEnvironment,
    ProjectRevision,
)
from projects.models.segments import Segment
from projects.models.strategies import Strategy, StrategySegment, StrategyType
from projects.models.tags import Tag, TagType
from projects.models.versions import VERSIONS, UsersChanged, VersionsSince

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

from projects.models.context_fields import ContextField
from projects.models.counted_reports import CountedReport
from projects.models.environments import Environment
from projects.models.flag_types import FlagType
from projects.models.flags import (
    Dependency,
    FavoriteFlag,
    FavoriteProject,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    FlagLink,
    FlagQuerySet,
    FlagTag,
    LifecycleStage,
)
from projects.models.projects import (
    ChangedFlags,
    OutsideChange,
    Project,
    ProjectEnvironment,
    ProjectRevision,
)
from projects.models.references import CodeReference, CodeReport
from projects.models.relays import Relay
from projects.models.sdk_versions import SdkVersion
from projects.models.segments import Segment
from projects.models.strategies import Strategy, StrategySegment, StrategyType
from projects.models.tags import Tag, TagType
from projects.models.versions import VERSIONS, UsersChanged, VersionsSince

from projects.models.projects import Environment, Project, ProjectEnvironment, ProjectRevision
from projects.models.vocabulary import (  # isort: split
    ContextField,
    FlagType,
    Segment,
    StrategyType,
    Tag,
    TagType,
)

from projects.models.applications import (  # isort: split
    Application,
    ApplicationInstance,
    FlagUsage,
    IgnoredReport,
    ImpactSeries,
    ProjectApplication,
    UsageHour,
)

from projects.models.flags import (
    Dependency,
    FavouriteFlag,
    FavouriteProject,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    FlagLink,
    FlagTag,
    LifecycleStage,
    Strategy,
    StrategySegment,
)

__all__ = [
    "Application",
    "ApplicationInstance",
    "ContextField",
    "Dependency",
    "Environment",
    "FavouriteFlag",
    "FavouriteProject",
    "Flag",
    "FlagEnvironment",
    "FlagLastSeen",
    "FlagLink",
    "FlagTag",
    "FlagType",
    "FlagUsage",
    "IgnoredReport",
    "ImpactSeries",
    "LifecycleStage",
    "Project",
    "ProjectApplication",
    "ProjectEnvironment",
    "ProjectRevision",
    "Segment",
    "Strategy",
    "StrategySegment",
    "StrategyType",
    "Tag",
    "TagType",
    "UsageHour",
]

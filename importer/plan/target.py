"""The project and environment of an import, and the reasons why flags cannot be imported."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from flagadmin.core.change_options import get_change_options
from flagadmin.core.document import Document
from flagadmin.core.errors import NoAccess, Problem, choices
from groups.access import Caller, Permission, describe_place
from groups.roles.subjects import name_permission
from playground.engine.definitions import StrategyDefinition
from projects.access import describe_unknown_environment, describe_unknown_project
from projects.models import Environment, Project, ProjectEnvironment
from projects.projects.links import make_links
from projects.rules import Limits
from projects.strategies.rules import StrategyDefaults, make_default_strategy


class IssueKind(Enum):
    """Kinds that the reference's ``validate`` reports in a special format. VALUE is any other issue.

    With PROJECT, there is no active project to import into.
    """

    STRATEGY_TYPE = auto()
    CONTEXT_FIELD = auto()
    OTHER_PROJECT = auto()
    DUPLICATE = auto()
    PATTERN = auto()
    FLAG_LIMIT = auto()
    SEGMENT = auto()
    DEPENDENCY = auto()
    PROJECT = auto()
    VALUE = auto()


@dataclass(frozen=True, slots=True)
class Issue:
    """The reason why something cannot be imported. ``flag`` is affected, ``item`` is the name that ``validate`` lists.

    ``users`` are the flags that cannot be imported because they use the invalid item, such as a segment.
    """

    kind: IssueKind
    path: str
    message: str
    flag: str | None = None
    item: str | None = None
    users: tuple[str, ...] = ()

    def problem(self) -> Problem:
        names_flag = not self.flag or self.flag in self.message
        return Problem(self.path, self.message if names_flag else f"{self.flag}: {self.message}")


def make_no_access(missing: Sequence[Permission], project: str) -> NoAccess:
    """A NoAccess error for all missing permissions: `You need the "Create flags" and … permissions in Shop.`"""
    names = " and ".join(f'"{name_permission(permission)}"' for permission in missing)
    noun = "permission" if len(missing) == 1 else "permissions"
    return NoAccess.missing(missing, f"You need the {names} {noun}{describe_place(project)}.")


@dataclass(frozen=True, slots=True)
class Target:
    """The project and environment of an import. A new flag gets a row in each of the project's ``environments``."""

    project: Project
    environment: str
    environments: tuple[str, ...]
    default_strategy: dict[str, Any] | None
    limits: Limits
    is_off: bool = False
    """Whether the environment is switched off."""
    keeps_results: bool = False
    """Whether users must keep their results from another server."""

    def make_defaults(self, flag: str) -> StrategyDefaults:
        return StrategyDefaults(flag, self.project.default_stickiness, keeps_results=self.keeps_results)

    def find_default_strategy(self, flag: str) -> StrategyDefinition:
        """The strategy added to a flag that is enabled without an enabled strategy."""
        return make_default_strategy(
            self.default_strategy, StrategyDefaults(flag, self.project.default_stickiness)
        )

    def make_first_links(self, flag: str) -> list[Document]:
        """The links that a new flag gets from the project."""
        links = make_links(self.project.link_templates, project=self.project.id, feature=flag)
        return [{"url": url, "title": title} for url, title in links]

    def state(self) -> list[Any]:
        """The parts of the target that a plan depends on, for its fingerprint."""
        project = self.project
        return [
            [self.default_strategy, self.environments, project.default_stickiness, project.link_templates]
        ]


def find_target(project_id: str, environment: str, *, caller: Caller) -> tuple[Target | None, list[Issue]]:
    """The target, or the issues that prevent it. Does not name projects that the caller may not read."""
    issues = []
    project = Project.objects.readable_by(caller).filter(id=project_id).first()
    if not project_id:
        issues.append(Issue(IssueKind.VALUE, "project", "Name the project to import into."))
    elif project is None:
        issues.append(Issue(IssueKind.PROJECT, "project", describe_unknown_project(caller, project_id[:100])))
    elif project.archived_at is not None:
        message = f"Project {project_id} is archived. Revive it first."
        issues.append(Issue(IssueKind.PROJECT, "project", message))
    is_on = Environment.objects.filter(name=environment).values_list("enabled", flat=True).first()
    if is_on is None:
        issues.append(Issue(IssueKind.VALUE, "environment", describe_unknown_environment(environment[:100])))
    if issues or project is None:
        return None, issues
    links = ProjectEnvironment.objects.filter(project=project).order_by("environment_id")
    strategies = dict(links.values_list("environment_id", "default_strategy"))
    if environment not in strategies:
        used = choices(strategies) or "none"
        message = f"Environment {environment} is not enabled in project {project_id}. Enabled: {used}."
        return None, [Issue(IssueKind.VALUE, "environment", message)]
    limits = Limits.from_settings()
    target = Target(
        project,
        environment,
        tuple(strategies),
        strategies[environment],
        limits,
        is_off=not is_on,
        keeps_results=get_change_options().comes_from_elsewhere,
    )
    return target, []

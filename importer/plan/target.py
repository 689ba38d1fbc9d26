"""The project and environment that flags are imported into."""

from dataclasses import dataclass
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.wording import choices
from groups.access import Caller
from importer.plan.issues import Issue, IssueKind
from playground.engine.definitions import StrategyDefinition
from projects.access import describe_unknown_environment, describe_unknown_project
from projects.limits import Limits
from projects.models import Environment, Project, ProjectEnvironment
from projects.projects.link_templates import make_links
from projects.strategies.rules import StrategyDefaults, make_default_strategy


@dataclass(frozen=True, slots=True)
class Target:
    """The project and environment of an import. A new flag gets a row in each of the project's ``environments``."""

    project: Project
    environment: str
    environments: tuple[str, ...]
    default_strategy: dict[str, Any] | None
    limits: Limits

    def make_defaults(self, flag: str) -> StrategyDefaults:
        return StrategyDefaults(flag, self.project.default_stickiness)

    def find_default_strategy(self, flag: str) -> StrategyDefinition:
        """The strategy added to a flag that is enabled without an enabled strategy."""
        return make_default_strategy(self.default_strategy, self.make_defaults(flag))

    def make_first_links(self, flag: str) -> list[Document]:
        """The links that the project gives to a new flag."""
        links = make_links(self.project.link_templates, project=self.project.id, feature=flag)
        return [{"url": url, "title": title} for url, title in links]

    def state(self) -> list[Any]:
        """The parts of the target that a plan depends on, for its fingerprint."""
        project = self.project
        return [
            [self.default_strategy, self.environments, project.default_stickiness, project.link_templates]
        ]


def find_target(project_id: str, environment: str, *, caller: Caller) -> tuple[Target | None, list[Issue]]:
    """The target, or the issues that prevent it. Projects the caller may not read are not named."""
    issues = []
    project = Project.objects.readable_by(caller).filter(id=project_id).first()
    if not project_id:
        issues.append(Issue(IssueKind.VALUE, "project", "Name the project to import into."))
    elif project is None:
        issues.append(Issue(IssueKind.PROJECT, "project", describe_unknown_project(caller, project_id[:100])))
    elif project.archived_at is not None:
        message = f"Project {project_id} is archived. Revive it first."
        issues.append(Issue(IssueKind.PROJECT, "project", message))
    if not Environment.objects.filter(name=environment).exists():
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
    return Target(project, environment, tuple(strategies), strategies[environment], limits), []

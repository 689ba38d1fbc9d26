"""Where an import goes: the project and the environment, if there are such."""

from dataclasses import dataclass
from typing import Any

from flagadmin.errors import choices
from groups.access import Caller
from importer.plan.issues import Finding, Kind
from projects.access import readable_projects, unknown_environment, unknown_project
from projects.limits import Limits
from projects.models import Environment, Project, ProjectEnvironment
from projects.strategies.rules import StrategyDefaults, default_strategy_document


@dataclass(frozen=True, slots=True)
class Target:
    """``environments`` are all those of the project: a new flag gets its switch in each."""

    project: Project
    environment: str
    environments: tuple[str, ...]
    default_strategy: dict[str, Any] | None
    limits: Limits

    def defaults(self, flag: str) -> StrategyDefaults:
        return StrategyDefaults(flag, self.project.default_stickiness)

    def default_strategy_of(self, flag: str) -> dict[str, Any]:
        """What a flag gets that is switched on without an enabled strategy."""
        return default_strategy_document(self.default_strategy, self.defaults(flag))


def find_target(project_id: str, environment: str, *, caller: Caller) -> tuple[Target | None, list[Finding]]:
    """The target, or what is wrong with it. Names no project that the caller may not read."""
    findings = []
    project = readable_projects(caller).filter(id=project_id).first()
    if project is None:
        findings.append(Finding(Kind.VALUE, "project", unknown_project(caller, project_id[:100])))
    elif project.archived_at is not None:
        findings.append(Finding(Kind.VALUE, "project", f"Project {project_id} is archived. Revive it first."))
    if not Environment.objects.filter(name=environment).exists():
        findings.append(Finding(Kind.VALUE, "environment", unknown_environment(environment[:100])))
    if findings or project is None:
        return None, findings
    links = ProjectEnvironment.objects.filter(project=project).order_by("environment_id")
    strategies = dict(links.values_list("environment_id", "default_strategy"))
    if environment not in strategies:
        used = choices(strategies) or "none"
        message = (
            f"Environment {environment} is not in use in project {project_id}. There are in use: {used}."
        )
        return None, [Finding(Kind.VALUE, "environment", message)]
    limits = Limits.from_settings()
    return Target(project, environment, tuple(strategies), strategies[environment], limits), []

"""Adds environments to a project, removes them, and sets the default strategy in each.

A flag that is turned on without a strategy gets a copy of the default strategy.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Conflict, Problem, ValidationError, check_problems, choices
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller, Permission
from groups.models import Group
from playground.engine.definitions import StrategyDefinition
from projects.access import access_environment, access_project_for_update, check_environment
from projects.models import FlagEnvironment, Project, ProjectEnvironment
from projects.project_scope import find_first_permission, hold_segments, name_is_free
from projects.projects.required_comments import MAX_APPROVALS, Rule, make_rule_document, rules_problems
from projects.rules import Limits
from projects.strategies.known_names import load_known_names
from projects.strategies.rules import StrategyDefaults, make_strategy, strategy_problems

SETTINGS_PERMISSIONS = (Permission.UPDATE_PROJECT, Permission.PROJECT_SETTINGS_WRITE)
POLICY_PERMISSIONS = (Permission.UPDATE_PROJECT, Permission.PROJECT_CHANGE_REQUEST_WRITE)
DEFAULT_STRATEGY_PERMISSIONS = (Permission.UPDATE_PROJECT, Permission.PROJECT_DEFAULT_STRATEGY_WRITE)


@transactional
def add_environment(
    project_id: str, name: str, *, default_strategy: Mapping[str, Any] | None = None, caller: Caller
) -> None:
    """Starts using an environment in the project.

    Raises NotFound, NoAccess, ValidationError if the environment does not exist, NameExists if the project already
    uses it.
    """
    project = access_project_for_update(caller, project_id, Permission.UPDATE_PROJECT)
    environment = check_environment(name)
    strategy = validate_default_strategy(project, default_strategy) if default_strategy else None
    with name_is_free(f"Project {project_id} already uses environment {name}."):
        ProjectEnvironment.objects.create(project=project, environment=environment, default_strategy=strategy)
    _record(EventType.PROJECT_ENVIRONMENT_ADDED, project_id, name, caller, after=strategy)


@transactional
def remove_environment(project_id: str, name: str, *, expected: Expected = None, caller: Caller) -> None:
    """Stops using an environment in the project.

    If the environment is added again, flags regain their settings there, but its default strategy is lost; ``expected``
    refers to that default strategy.

    Raises NotFound, NoAccess, EditConflict, Conflict naming the flags that are on there, and ValidationError
    for the last environment.
    """
    project = access_project_for_update(caller, project_id, Permission.UPDATE_PROJECT)
    link = access_link_for_update(project, name)
    before = link.default_strategy
    check_expected(expected, before)
    on = FlagEnvironment.objects.filter(flag__project=project, environment=name, enabled=True)
    if flags := set(on.filter(flag__archived_at=None).values_list("flag__name", flat=True)):
        raise Conflict(f"Flags are still on in {name}: {choices(flags)}. Switch them off there first.")
    if not ProjectEnvironment.objects.filter(project=project).exclude(pk=link.pk).exists():
        raise ValidationError("A project must always use one environment; add another one first.")
    # Before deleting the row, which decides whether this needs a comment.
    _record(EventType.PROJECT_ENVIRONMENT_REMOVED, project_id, name, caller, before=before)
    link.delete()


@transactional
def set_default_strategy(
    project_id: str,
    name: str,
    strategy: Mapping[str, Any] | None,
    *,
    expected: Expected = None,
    caller: Caller,
) -> StrategyDefinition | None:
    """Sets the strategy for flags that are turned on without one.

    None restores the built-in strategy, which is on for everyone. Raises NotFound, NoAccess, EditConflict,
    ValidationError.
    """
    permission = find_first_permission(caller, project_id, *DEFAULT_STRATEGY_PERMISSIONS)
    project = access_project_for_update(caller, project_id, permission)
    link = access_link_for_update(project, name)
    before = link.default_strategy
    check_expected(expected, before)
    after = validate_default_strategy(project, strategy, stored=before) if strategy else None
    link.default_strategy = after
    link.save(update_fields=["default_strategy"])
    _record(EventType.DEFAULT_STRATEGY_UPDATED, project_id, name, caller, before=before, after=after)
    return after


@transactional
def require_comment(project_id: str, name: str, required: bool, *, caller: Caller) -> None:
    """Sets whether changes of flags in this environment need a comment; ending the requirement needs one too.

    Raises NotFound, NoAccess, CommentRefused.
    """
    permission = find_first_permission(caller, project_id, *SETTINGS_PERMISSIONS)
    project = access_project_for_update(caller, project_id, permission)
    link = access_link_for_update(project, name)
    if link.comment_required == required:
        return
    before, after = ({"commentRequired": value} for value in (link.comment_required, required))
    _record(EventType.PROJECT_ENVIRONMENT_UPDATED, project_id, name, caller, before=before, after=after)
    link.comment_required = required
    link.save(update_fields=["comment_required"])


@transactional
def set_policy(
    project_id: str,
    environment: str,
    approvals: int | None,
    *,
    rules: Sequence[Rule] | None = None,
    groups: Collection[int] | None = None,
    expected: Expected = None,
    caller: Caller,
) -> None:
    """Sets the number of approvals for changes of the environment's results. None: no change request.

    ``rules``: exceptions by effect. ``groups``: ids of the groups whose members may approve, [] for everyone with the
    permission. None keeps them. Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    project = access_project_for_update(caller, project_id, None)
    caller.check_any(POLICY_PERMISSIONS, project=project_id)
    link = access_link_for_update(project, environment)
    before = make_policy_document(link)
    check_expected(expected, before)
    problems = [*rules_problems(rules or (), "approvalRules"), *_group_problems(groups or (), link)]
    if approvals is not None and not 0 <= approvals <= MAX_APPROVALS:
        problems.append(Problem("requiredApprovals", f"must be 0 to {MAX_APPROVALS}, not {approvals}"))
    check_problems(problems)
    link.required_approvals = approvals
    if rules is not None:
        link.approval_rules = [make_rule_document(rule) for rule in rules]
    if groups is not None:
        link.approver_groups = sorted(set(groups))
    if (after := make_policy_document(link)) == before:
        return
    link.save(update_fields=["required_approvals", "approval_rules", "approver_groups"])
    event = Event(
        type=EventType.CHANGE_REQUESTS_CONFIGURED,
        project=project_id,
        environment=environment,
        before=before,
        after=after,
    )
    record(event, actor=caller)


def make_policy_document(link: ProjectEnvironment) -> Document:
    return {
        "changeRequestsEnabled": link.required_approvals is not None,
        "requiredApprovals": link.required_approvals,
        "approvalRules": link.approval_rules,
        "approverGroups": link.approver_groups,
    }


def _group_problems(groups: Collection[int], link: ProjectEnvironment) -> Iterator[Problem]:
    known = {*Group.objects.filter(pk__in=groups).values_list("pk", flat=True), *link.approver_groups}
    for index, group in enumerate(groups):
        if group not in known:
            yield Problem(f"approverGroups[{index}]", f"group {group} does not exist")


def access_link_for_update(project: Project, name: str) -> ProjectEnvironment:
    """The project's link to an environment, locked.

    Raises NotFound if the environment is unknown or the project does not use it.
    """
    access_environment(name)
    links = ProjectEnvironment.objects.select_for_update(of=("self",))
    return get_or_404(
        links, f"Project {project.pk} does not use environment {name}.", project=project, environment=name
    )


def validate_default_strategy(
    project: Project, values: Mapping[str, Any], *, stored: StrategyDefinition | None = None
) -> StrategyDefinition:
    """A default strategy in stored form, replacing ``stored``. Later, a flag's name replaces an empty ``groupId``.

    Raises ValidationError.
    """
    defaults = StrategyDefaults(flag="", stickiness=project.default_stickiness)
    document = make_strategy(values, defaults)
    hold_segments(document["segments"])
    known = load_known_names(project.pk)
    limits = Limits.from_settings()
    check_values(strategy_problems(document, "", known_names=known, limits=limits, stored=stored))
    return document


def _record(
    kind: EventType, project: str, environment: str, caller: Caller, *, before: Any = None, after: Any = None
) -> None:
    record(
        Event(
            type=kind,
            project=project,
            environment=environment,
            subject=environment,
            before=before,
            after=after,
        ),
        actor=caller,
    )

"""Reads the projects that use an environment, and the losses from deleting it."""

from collections.abc import Iterator

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from flagadmin.core.wording import join_words, pluralize
from groups.access import Caller
from groups.models import RolePermission
from projects.deletion.kept_names import ENVIRONMENT, list_users
from projects.models import Environment, Flag, FlagEnvironment, Project, ProjectEnvironment, Strategy


def describe_losses(environment: Environment, caller: Caller) -> Iterator[str]:
    """Describes the losses from deleting the environment, in nine queries. Projects that no longer use it still have
    their flags' settings there.
    """
    yield f"Environment {environment.name} ({environment.type})"
    strategies = Strategy.objects.filter(environment=environment)
    states = FlagEnvironment.objects.filter(environment=environment)
    touched = states.filter(Q(enabled=True) | ~Q(variants=[]))
    flags = {*strategies.values_list("flag_id", flat=True), *touched.values_list("flag_id", flat=True)}
    if flags:
        number = pluralize(strategies.count(), "strategy", "strategies")
        yield f"What {pluralize(len(flags), 'flag')} had there, with {number}"
    if plans := environment.release_plans.count():
        yield f"{pluralize(plans, 'release plan')} of flags there"
    if safeguards := Flag.objects.filter(safeguards__environment=environment).count():
        yield f"{pluralize(safeguards, 'safeguard')} of flags there"
    # Drafts are private to their authors.
    if requests := environment.change_requests.exclude(state="Draft").count():
        yield f"{pluralize(requests, 'change request')}"
    limited = RolePermission.objects.filter(environment=environment)
    for role, number in limited.values_list("role__name").annotate(Count("pk")).order_by("role__name"):
        yield f"{pluralize(number, 'permission')} of role {role} that {'is' if number == 1 else 'are'} limited to it"
    if users := list_users(ENVIRONMENT, [environment.name], caller):
        yield f"What applies to this environment only: {join_words(users)}"


def find_projects_with_use(environment: Environment, caller: Caller) -> QuerySet[Project]:
    """The caller's active projects, with ``is_used`` and ``flags_on`` there, those that use it first."""
    links = ProjectEnvironment.objects.filter(project=OuterRef("pk"), environment=environment)
    on = Q(
        flags__archived_at=None,
        flags__environments__environment=environment,
        flags__environments__enabled=True,
    )
    projects = Project.objects.active().readable_by(caller)
    counted_projects = projects.annotate(is_used=Exists(links), flags_on=Count("flags", filter=on))
    return counted_projects.order_by("-is_used", "name", "pk")

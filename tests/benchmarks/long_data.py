"""An installation with more of everything than fits on a page, beside the scenery. Rows only, no HTTP."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, ApiTokenProject, Grant, Group, GroupMembership, Role, User
from groups.permissions import BuiltIn
from importer.models import FlagReport, ImportRun
from projects.models import (
    Application,
    ApplicationInstance,
    ContextField,
    Dependency,
    Environment,
    Flag,
    FlagEnvironment,
    FlagLink,
    FlagTag,
    FlagUsage,
    Project,
    ProjectApplication,
    ProjectEnvironment,
    Segment,
    Strategy,
    StrategySegment,
    StrategyType,
    TagType,
)
from tests.support.scenery import constraint, make_scenery

FULL = "a-flag-with-as-much-as-there-may-be"
MANY, SOME, FEW = 3_000, 1_000, 500


def make_long_data() -> None:
    make_scenery()
    checkout, portal = Project.objects.get(pk="checkout"), Project.objects.get(pk="legacy-portal")
    make_vocabulary()
    make_projects()
    make_people(checkout)
    make_flags(checkout)
    make_flags(portal, archived_at=timezone.now())
    make_full_flag(checkout)
    make_tokens()
    make_applications(checkout)
    make_events()
    make_imports()


def named(what: str, number: int) -> Iterator[str]:
    return (f"{what}-{index:04}-{'long' * 5}" for index in range(number))


def long_constraints(number: int = 30) -> list[dict[str, Any]]:
    values = [f"{index:03}{'v' * 97}" for index in range(250)]
    return [constraint("country", "IN", *values) for _ in range(number)]


def make_vocabulary() -> None:
    values = [{"value": value, "description": "d" * 100} for value in named("value", SOME)]
    ContextField.objects.bulk_create(
        ContextField(name=name, stickiness=True, legal_values=values) for name in named("field", 300)
    )
    ContextField.objects.filter(name="plan").update(legal_values=values)
    TagType.objects.bulk_create(TagType(name=name, description="d" * 200) for name in named("tags", FEW))
    parameters = [{"name": f"parameter-{index}", "type": "string"} for index in range(20)]
    StrategyType.objects.bulk_create(
        StrategyType(name=name, title=name, description="d" * 200, parameters=parameters)
        for name in named("type", FEW)
    )
    Environment.objects.bulk_create(Environment(name=name) for name in named("env", 8))
    Segment.objects.bulk_create(
        Segment(name=name, description="d" * 500, constraints=long_constraints(1) if index < 20 else [])
        for index, name in enumerate(named("segment", SOME))
    )
    Segment.objects.filter(name="beta-testers").update(constraints=long_constraints())


def make_projects() -> None:
    environments = list(Environment.objects.all())
    projects = Project.objects.bulk_create(
        Project(id=name, name=name, description="d" * 500) for name in named("project", FEW)
    )
    links = [ProjectEnvironment(project=p, environment=e) for p in projects for e in environments[:2]]
    links += [
        ProjectEnvironment(project=project, environment=environment)
        for project in Project.objects.filter(pk__in=["checkout", "legacy-portal"])
        for environment in environments
    ]
    ProjectEnvironment.objects.bulk_create(links, ignore_conflicts=True)


def make_people(project: Project) -> None:
    """Maria, the group, and one service account hold and have a lot; so does a role."""
    password = make_password(None)
    people = User.objects.bulk_create(
        User(username=name, name=name.title(), email=f"{name}@example.org", password=password)
        for name in named("person", 1_500)
    )
    services = User.objects.bulk_create(
        User(username=name, is_service=True, password=password) for name in named("service", FEW)
    )
    Role.objects.bulk_create(Role(name=name, description="d" * 300) for name in named("role", FEW))
    Role.objects.bulk_create(
        Role(name=name, description="d" * 300, type="root-custom") for name in named("root", FEW)
    )
    groups = Group.objects.bulk_create(
        Group(name=name, description="d" * 300) for name in named("group", FEW)
    )
    team, maria = Group.objects.get(name="Checkout team"), User.objects.get(username="maria")
    robot, admin = User.objects.get(username="ci-pipeline"), User.objects.get(username="admin")
    GroupMembership.objects.bulk_create(GroupMembership(group=team, user=user) for user in people[:SOME])
    GroupMembership.objects.bulk_create(
        GroupMembership(group=group, user=user) for group in groups for user in (maria, admin)
    )
    projects = Project.objects.filter(pk__startswith="project-")
    Grant.objects.bulk_create(
        Grant(role_id=role, project=each, **holder)
        for each in projects
        for role in (BuiltIn.OWNER, BuiltIn.MEMBER)
        for holder in ({"group": team}, {"user": maria}, {"user": robot}, {"user": admin})
    )
    portal = Project.objects.get(pk="legacy-portal")
    Grant.objects.bulk_create(
        Grant(role_id=role, project=each, user=user)
        for user in people[:FEW] + services
        for role in (BuiltIn.OWNER, 5)
        for each in (project, portal)
    )
    Grant.objects.bulk_create(
        Grant(role_id=BuiltIn.MEMBER, project=each, group=group)
        for group in groups
        for each in (project, portal)
    )
    for root_role in (BuiltIn.ADMIN, BuiltIn.EDITOR):
        some = people[FEW * root_role : FEW * root_role + 400]
        User.objects.filter(pk__in=[user.pk for user in some]).update(root_role_id=root_role)


def make_flags(project: Project, **fields: Any) -> None:
    """Half of them archived, unless ``archived_at`` says so of all; every one in every environment, with a strategy."""
    now, environments = timezone.now(), list(Environment.objects.all())
    flags = Flag.objects.bulk_create(
        Flag(
            project=project,
            name=f"{project.pk}-{name}",
            description="d" * 500,
            created_at=now,
            archived_at=fields.get("archived_at", now if index % 2 else None),
        )
        for index, name in enumerate(named("flag", MANY))
    )
    FlagEnvironment.objects.bulk_create(
        FlagEnvironment(flag=flag, environment=environment, enabled=True)
        for flag in flags
        for environment in environments
    )
    strategies = Strategy.objects.bulk_create(
        Strategy(flag=flag, environment_id="production", name="hostGroup", parameters={"hosts": "a"})
        for flag in flags
    )
    beta = Segment.objects.get(name="beta-testers")
    StrategySegment.objects.bulk_create(
        StrategySegment(strategy=strategy, segment=beta) for strategy in strategies
    )
    FlagTag.objects.bulk_create(
        FlagTag(flag=flag, tag_type_id="simple", value=f"of-{flag.name}"[:50]) for flag in flags[:SOME]
    )
    parent = Flag.objects.get(name="portal-login" if fields else "checkout-redesign")
    Dependency.objects.bulk_create(Dependency(flag=flag, parent=parent) for flag in flags)


def make_full_flag(project: Project) -> None:
    """One flag at all its limits: strategies, conditions, values, tags, links; a lot of parents and children."""
    now = timezone.now()
    flag = Flag.objects.create(project=project, name=FULL, created_at=now, description="d" * 10_000)
    variants = [
        {"name": name, "weight": 2, "weightType": "variable", "stickiness": "default"}
        | {"payload": {"type": "string", "value": "p" * 5_000}}
        for name in named("variant", 500)
    ]
    environments = list(Environment.objects.all())
    FlagEnvironment.objects.bulk_create(
        FlagEnvironment(flag=flag, environment=environment, enabled=True, variants=variants)
        for environment in environments
    )
    segments = list(Segment.objects.filter(name__startswith="segment-")[:5])
    for environment in environments:
        strategies = Strategy.objects.bulk_create(
            Strategy(
                flag=flag,
                environment=environment,
                name="flexibleRollout",
                title="t" * 500,
                sort_order=order,
                parameters={"rollout": "50", "stickiness": "default", "groupId": FULL},
                constraints=long_constraints(),
                variants=variants[:100],
            )
            for order in range(30 if environment.name in ("production", "development") else 1)
        )
        StrategySegment.objects.bulk_create(
            StrategySegment(strategy=strategy, segment=segment)
            for strategy in strategies
            for segment in segments
        )
    ProjectEnvironment.objects.filter(project=project).update(
        default_strategy={"name": "flexibleRollout", "parameters": {}, "constraints": long_constraints()}
    )
    FlagTag.objects.bulk_create(
        FlagTag(flag=flag, tag_type_id="simple", value=value) for value in named("tag", SOME)
    )
    FlagLink.objects.bulk_create(
        FlagLink(flag=flag, url=f"https://example.org/{'l' * 1_000}") for _ in range(10)
    )
    others = Flag.objects.active().filter(project=project).exclude(pk=flag.pk)
    Dependency.objects.bulk_create(Dependency(flag=flag, parent=parent) for parent in others[:FEW])


def make_tokens() -> None:
    tokens = []
    holders = User.objects.filter(username__in=["maria", "ci-pipeline", "admin"])
    for user in holders:
        tokens += [
            ApiToken(kind="personal", name=name, user=user, secret_hash=f"{user}{name}", prefix="user:ab")
            for name in named("key", FEW)
        ]
    shared = [
        ApiToken(
            kind="backend", name=name, environment_id="production", secret_hash=name, prefix="checkout:ab"
        )
        for name in named("shared", SOME)
    ]
    made = ApiToken.objects.bulk_create(tokens + shared)[len(tokens) :]
    ApiTokenProject.objects.bulk_create(
        ApiTokenProject(token=token, project_id=project)
        for token in made
        for project in ("checkout", "legacy-portal")
    )
    projects = Project.objects.filter(pk__startswith="project-")
    ApiTokenProject.objects.bulk_create(
        ApiTokenProject(token=token, project=project) for token in made[-50:] for project in projects
    )
    token = ApiToken.objects.filter(user=None).order_by("pk")[0]
    ApiTokenProject.objects.bulk_create(ApiTokenProject(token=token, project=project) for project in projects)


def make_applications(project: Project) -> None:
    now = timezone.now()
    applications = Application.objects.bulk_create(
        Application(
            name=name, folded_name=name, created_at=now, strategies=["default"], description="d" * 500
        )
        for name in named("app", 2_000)
    )
    shop = Application.objects.get(name="web-shop")
    ApplicationInstance.objects.bulk_create(
        ApplicationInstance(
            application=application,
            environment=environment,
            instance_id=instance,
            sdk_version=f"unleash-client-node:{index}.0.{index}",
            first_seen_at=now,
            seen_at=now,
        )
        for application, number in ((shop, 2_000), *((each, 2) for each in applications))
        for index, instance in enumerate(named("instance", number))
        for environment in ("production", "development")
    )
    ProjectApplication.objects.filter(project_id=project.pk, application_id=shop.pk).update(
        sdks=[f"unleash-client-node:{index}.0" for index in range(200)], sdk_count=200, instance_count=4_000
    )
    ProjectApplication.objects.bulk_create(
        ProjectApplication(
            project_id=project.pk,
            application_id=application.pk,
            name=application.name,
            search=application.name,
            environments=["production", "development"],
            sdks=[f"unleash-client-node:{index}.0" for index in range(100)],
            environment_count=2,
            instance_count=4,
            sdk_count=100,
            last_seen_at=now,
            oldest_seen_at=now,
        )
        for application in applications
    )
    known = set(FlagUsage.objects.values_list("application_id", "flag_id"))
    FlagUsage.objects.bulk_create(
        FlagUsage(application_id=application, flag_id=flag, environment="production", last_used_at=now)
        for application, flags in (
            (shop.pk, Flag.objects.values_list("pk", flat=True)),
            *(
                (each.pk, Flag.objects.filter(name=FULL).values_list("pk", flat=True))
                for each in applications
            ),
        )
        for flag in flags
        if (application, flag) not in known
    )


def make_events() -> None:
    before = dict.fromkeys(named("field", 40), "b" * 1000)
    after = dict.fromkeys(named("field", 40), "a" * 1000)
    AuditEvent.objects.bulk_create(
        AuditEvent(
            type=EventType.FEATURE_METADATA_UPDATED,
            actor_name="admin",
            project="checkout",
            feature=FULL,
            before=before,
            after=after,
        )
        for _ in range(500)
    )


def make_imports() -> None:
    """500 that are done, and one of 3,000 flags with all that can be said of each."""
    ImportRun.objects.bulk_create(run() for _ in range(FEW))
    full = run(preview={})
    full.save()
    FlagReport.objects.bulk_create(
        FlagReport(
            run=full,
            name=name,
            action="update",
            reason="r" * 500,
            summary="s" * 500,
            changes=[{"part": "description", "before": "b" * 2_000, "after": "a" * 2_000}],
        )
        for name in named("flag", MANY)
    )


def run(**fields: Any) -> ImportRun:
    now = timezone.now()
    return ImportRun(
        source="console",
        state=ImportRun.State.DONE,
        caller_name="admin",
        project="checkout",
        environment="production",
        file_name="f" * 255,
        finished_at=now,
        expires_at=now + timedelta(days=1),
        **fields,
    )

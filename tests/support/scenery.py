"""Creates sample data for page tests directly in the database: projects, flags, usage and activity."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record_all
from groups.access import Caller
from groups.models import Grant, Group, GroupMembership, User
from groups.permissions import BuiltIn
from playground.models import SavedContext
from projects.applications.store_report import store_report
from projects.applications.usage_report import Count, FlagUse, Instance, InstanceKey, UsageReport
from projects.models import (
    ContextField,
    Dependency,
    Environment,
    Flag,
    FlagLink,
    ImpactPoint,
    Project,
    Segment,
    StrategyType,
)
from releases.models import MetricChart, Milestone, ReleasePlan, ReleaseTemplate, Safeguard
from tests.support.analyses import make_done_analysis
from tests.support.cast import make_group, make_project, make_token, make_user
from tests.support.demo import made_once
from tests.support.flags import add_strategy, make_flag
from tests.support.receiver import make_integration
from tests.support.signals import make_alert, make_body, make_rule, make_source

PAYMENT = [
    {"name": "blue", "weight": 500, "weightType": "variable", "stickiness": "default"},
    {"name": "green", "weight": 500, "weightType": "variable", "stickiness": "default"},
]

STRATEGY = {
    "name": "flexibleRollout", "title": None, "disabled": False, "constraints": [], "segments": [], "variants": [],
}  # fmt: skip


def add_flag(project: Project, name: str, *, off_in: tuple[str, ...] = (), **fields: Any) -> Flag:
    """Creates a flag without strategies that is on in every environment except ``off_in``."""
    flag = make_flag(name, project, **fields)
    flag.environments.exclude(environment__in=off_in).update(enabled=True)
    return flag


def add_strategies(
    flag: Flag, *, rollout: int = 100, segments: tuple[Segment, ...] = (), **fields: Any
) -> None:
    """Adds one strategy to every environment: a gradual rollout by userId, unless ``name`` is given."""
    fields.setdefault("name", "flexibleRollout")
    if fields["name"] == "flexibleRollout":
        fields.setdefault(
            "parameters", {"rollout": str(rollout), "stickiness": "userId", "groupId": flag.name}
        )
    for environment in Environment.objects.all():
        add_strategy(flag, environment.name, segments=segments, **fields)


def constraint(name: str, operator: str, *values: str) -> dict[str, Any]:
    single = operator.startswith(("NUM", "SEMVER", "DATE"))
    return {
        "contextName": name, "operator": operator, "values": [] if single else list(values),
        "value": values[0] if single else "", "inverted": False, "caseInsensitive": False,
    }  # fmt: skip


@pytest.fixture(scope="module")
def scenery(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with made_once(make_scenery, django_db_blocker):
        yield


@transaction.atomic
def make_scenery() -> None:
    """Creates projects such as checkout and legacy-portal, with a flag for each reason for a result."""
    make_vocabulary()
    checkout = make_project("checkout")
    make_flags(checkout)
    portal = make_project("legacy-portal", name="Legacy portal")
    add_flag(portal, "portal-banner")
    add_flag(portal, "portal-read-only")
    for name in ("portal-login", "portal-export"):
        add_flag(portal, name, archived=True)
    events = [Event(type=EventType.PROJECT_CREATED, project="checkout", after={"name": "Checkout"})]
    events += [
        Event(
            type=EventType.FEATURE_CREATED, project="checkout", feature=flag.name, after={"name": flag.name}
        )
        for flag in checkout.flags.all()
    ]
    events.append(
        Event(
            type=EventType.FEATURE_STRATEGY_UPDATE, project="checkout", feature="dark-theme",
            environment="production", before=STRATEGY | {"parameters": {"rollout": "25"}}, after=STRATEGY | {"parameters": {"rollout": "50"}},
        )
    )  # fmt: skip
    switched_on = {"project": "checkout", "feature": "checkout-redesign", "environment": "production"}
    events.append(Event(type=EventType.FEATURE_ENVIRONMENT_ENABLED, **switched_on))
    events.append(Event(type=EventType.FEATURES_IMPORTED, project="checkout", environment="production"))
    record_all(events, actor=Caller.system())
    make_applications()
    make_access(checkout)
    make_deliveries()
    make_signals()
    make_release_plan(checkout.flags.get(name="vip-lounge"))
    make_done_analysis(checkout.flags.get(name="checkout-redesign"))


def make_release_plan(flag: Flag) -> None:
    """A template, and a plan that its safeguard has paused at the first of two steps, without any event."""
    now = timezone.now()
    strategies = [STRATEGY | {"id": "1", "parameters": {"rollout": "100", "stickiness": "userId"}}]
    template = ReleaseTemplate.objects.create(name="Careful")
    plan = ReleasePlan.objects.create(
        flag=flag, environment_id="production", name="Careful", state="paused", reason="Errors above 5: 9 now.",
        since=now - timedelta(hours=3), paused_at=now, numbers_from=now - timedelta(hours=3), by_name="maria",
    )  # fmt: skip
    for place, name in enumerate(("Some", "All")):
        wait = {"intervalMinutes": 60}
        Milestone.objects.create(
            template=template, name=name, place=place, strategies=strategies, transition=wait
        )
        milestone = Milestone.objects.create(
            plan=plan, name=name, place=place, strategies=strategies, transition=wait
        )
        if place == 0:
            milestone.started_at, plan.active = plan.since, milestone
            milestone.save()
            plan.save()
    errors = {"title": "Errors", "metric": "errors", "aggregation": "avg", "time_range": "hour"}
    Safeguard.objects.create(plan=plan, threshold=5, **errors)
    gift_cards = Flag.objects.get(name="gift-cards")
    Safeguard.objects.create(flag=gift_cards, environment_id="production", threshold=5, **errors)
    for owner in (gift_cards, None):
        MetricChart.objects.create(flag=owner, **errors)
    ImpactPoint.objects.bulk_create(
        ImpactPoint(
            name="errors",
            at=now - timedelta(minutes=minute),
            labels="{}",
            kind="gauge",
            value=9 - minute / 20,
        )
        for minute in range(0, 170, 10)
    )


def make_applications() -> None:
    """web-shop (two SDK versions) and ios-app use project checkout; portal-web uses legacy-portal."""
    now, report = timezone.now(), UsageReport()
    for application, environment, sdk, flags in (
        ("web-shop", "production", "unleash-node-sdk:6.12.1", ("search-v2", "dark-theme")),
        ("web-shop", "development", "unleash-node-sdk:6.11.0", ("dark-theme",)),
        ("ios-app", "production", "unleash-ios-sdk:2.3.0", ("apple-pay",)),
        ("portal-web", "production", "unleash-java-sdk:10.2.2", ("portal-read-only",)),
    ):
        instance = Instance(sdk_version=sdk, sdk_type="backend")
        report.add_instance(InstanceKey(application, f"{application}-{environment}", environment), instance)
        for flag in flags:
            at = now - timedelta(minutes=3)
            report.add_count(FlagUse(application, flag, environment), at, Count(yes=12, no=5), now=now)
    store_report(report)


def make_access(project: Project) -> None:
    """Creates a group with one user, a service account, roles for both, and a token for applications."""
    maria, robot = make_user("maria", name="Maria Olsen"), make_user("ci-pipeline", is_service=True)
    team = Group.objects.create(name="Checkout team", description="Owns the checkout.")
    GroupMembership.objects.create(group=team, user=maria)
    Grant.objects.create(role_id=BuiltIn.OWNER, project=project, group=team)
    Grant.objects.create(role_id=BuiltIn.MEMBER, project=project, user=robot)
    make_token("personal", user=robot, name="nightly builds")
    make_token("backend", projects=[project.pk], environment="production", name="checkout in production")


def make_deliveries() -> None:
    """A webhook with an event that was sent, and one that failed."""
    webhook = make_integration("https://receiver.example.org/hook", description="Deployments channel")
    created, switched = (
        AuditEvent.objects.filter(type=kind).earliest("id")
        for kind in (EventType.FEATURE_CREATED, EventType.FEATURE_ENVIRONMENT_ENABLED)
    )
    details = {"url": "*****", "contentType": "application/json", "body": {"type": created.type}}
    said = "Webhook request was successful with status code: 200."
    for event, state, text in (
        (created, "success", said),
        (switched, "failed", "Webhook request failed with status code: 404."),
    ):
        webhook.deliveries.create(
            event_id=event.pk,
            state=state,
            attempts=1,
            sent_at=event.created_at,
            milliseconds=12,
            state_details=text,
            details=details,
        )


def make_signals() -> None:
    """A source with a rule that is on, and a signal that it met."""
    source = make_source()
    place = {"flag": "checkout-redesign", "project": "checkout"}
    make_rule(source, author=User.objects.get(username="maria"), **place)
    results = [{"rule": "Checkout fails", "result": "turnedOff", "environment": "production", **place}]
    source.signals.create(body=make_body(make_alert()), results=results)


def make_contractors() -> Group:
    """A group of people, one of whom has no other access."""
    people = [
        make_user(name.lower(), root_role=role, name=name)
        for name, role in (("Ken", BuiltIn.VIEWER), ("Lukas", BuiltIn.VIEWER), ("Noor", None))
    ]
    group = make_group("Former contractors", *people)
    Grant.objects.create(group=group, project_id="legacy-portal", role_id=BuiltIn.MEMBER.value)
    return group


def make_vocabulary() -> None:
    fields = {
        "plan": ["free", "pro", "enterprise"], "country": ["DE", "NO", "US"], "appVersion": [], "region": [],
    }  # fmt: skip
    ContextField.objects.bulk_create(
        ContextField(name=name, sort_order=order, legal_values=[{"value": value} for value in values])
        for order, (name, values) in enumerate(fields.items(), start=10)
    )
    hosts = {"name": "hosts", "type": "list", "description": "", "required": True}
    StrategyType.objects.create(name="hostGroup", description="By group of hosts", parameters=[hosts])
    Segment.objects.create(name="beta-testers", constraints=[constraint("userId", "IN", "7", "42")])
    Segment.objects.create(name="vip-users", constraints=[constraint("plan", "IN", "enterprise")])
    pro = {"userId": "42", "properties": {"plan": "pro", "appVersion": "4.5.1", "country": "NO"}}
    expected = [
        {"flag": flag, "environment": "production", "enabled": True, "variant": None}
        for flag in ("buy-now-button", "checkout-redesign")
    ]
    SavedContext.objects.create(
        name="Norwegian pro user",
        note="Pays by invoice.",
        context=pro,
        expectations=expected,
        enforced_in={one["flag"]: "checkout" for one in expected},
    )


def make_flags(project: Project) -> None:
    beta, vip = Segment.objects.get(name="beta-testers"), Segment.objects.get(name="vip-users")
    add_strategies(
        add_flag(project, "apple-pay"),
        constraints=[constraint("appVersion", "SEMVER_GT", "5.0.0"), constraint("country", "IN", "US", "DE")],
    )
    add_strategies(add_flag(project, "beta-dashboard"), segments=(beta,))
    add_strategies(add_flag(project, "vip-lounge"), segments=(vip,))
    add_strategies(
        add_flag(project, "dark-theme"), rollout=50, title="Half of the paying ones",
        constraints=[constraint("plan", "IN", "pro", "enterprise")],
    )  # fmt: skip
    parent = add_flag(project, "checkout-redesign")
    FlagLink.objects.create(flag=parent, url="https://tickets.example/CHECKOUT-12", title="CHECKOUT-12")
    add_strategies(parent, rollout=10)
    gifts = add_flag(project, "gift-cards")
    add_strategies(gifts)
    gifts.environments.update(variants=PAYMENT)
    Dependency.objects.create(flag=gifts, parent=parent)
    add_strategies(add_flag(project, "image-cdn-switch"), name="hostGroup", parameters={"hosts": "a,b"})
    add_strategies(add_flag(project, "new-date-picker", off_in=("production",)))
    add_strategies(add_flag(project, "search-v2"), rollout=60, variants=PAYMENT)
    add_strategies(
        add_flag(project, "sampling"),
        parameters={"rollout": "30", "stickiness": "random", "groupId": "sampling"},
    )
    add_strategies(
        add_flag(project, "winter-sale"),
        constraints=[constraint("currentTime", "DATE_AFTER", "2030-12-01T00:00:00Z")],
    )

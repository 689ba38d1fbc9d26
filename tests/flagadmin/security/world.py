"""One of everything in project ``shop``, and what stands for it in addresses."""

import hashlib
import json
import re
from datetime import timedelta
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, Group, InviteLink, Role, User
from groups.permissions import BuiltIn
from importer.models import ImportRun, InstallationMove
from integrations.models import Delivery
from playground.models import Analysis, SavedContext, UserRun
from playground.outcomes.analyses.design import Design, read_measure
from projects.models import (
    Application,
    ContextField,
    Dependency,
    Flag,
    FlagEnvironment,
    FlagLink,
    FlagTag,
    FlagView,
    Segment,
    Strategy,
    StrategySegment,
    StrategyType,
    TagType,
)
from releases.models import (
    Change,
    ChangeRequest,
    MetricChart,
    Milestone,
    ReleasePlan,
    ReleaseTemplate,
    Safeguard,
)
from tests.flagadmin.security.routes import Route
from tests.support.cast import make_token, make_user
from tests.support.receiver import make_integration
from tests.support.signals import make_rule, make_source

# What stands for a placeholder, by what stands before it in the address. The first that fits counts.
PLACES: tuple[tuple[str, str], ...] = (
    (r"api/docs/$", "operation"),
    (r"schemas/$", "kind of file"),
    (r"projects/<\w+>/context/$", "project context field"),
    (r"context/$", "context field"),
    (r"(if-saved|in-steps)/$", "form"),
    (r"addons/<\w+>/events/$", "delivery"),
    (r"addons/$", "integration"),
    (r"signals/<\w+>/rules/$", "signal rule"),
    (r"api/signals/$", "signal source name"),
    (r"signals/$", "signal source"),
    (r"deliveries/$", "delivery"),
    (r"integrations/new/$", "provider"),
    (r"integrations/$", "integration"),
    (r"context-fields/$", "context field"),
    (r"import/$", "import"),
    (r"legal-values/$", "legal value"),
    (r"features/<\w+>/dependencies/$", "parent"),
    (r"/link/$", "link"),
    (r"environments/project/$", "project"),
    (r"personal-dashboard/$", "project"),
    (r"(change-requests|playground/change-request)/$", "change request"),
    (r"change-requests/pending/$", "flag"),
    (r"change-requests/<\w+>/changes/$", "change"),
    (r"available-reviewers/$", "environment"),
    (r"environments?/(update/)?$", "environment"),
    (r"projects/(archive/|revive/)?$", "project"),
    (r"archive/features/$", "project"),
    (r"admin/archive/(revive/)?$", "archived flag"),
    (r"(features|playground/flag|evaluate/flags)/$", "flag"),
    (r"(events|activity)/<event_id>$", "event"),
    (r"events/$", "flag"),
    (r"segments/strategies/$", "strategy"),
    (r"release-plan-templates/(archive/)?$", "release template"),
    (r"projects/<\w+>/release-templates/(archive/)?$", "release template of a project"),
    (r"release-plans/$", "release plan"),
    (r"features/<\w+>/plans/$", "release plan"),
    (r"plans/<\w+>/$", "verb of a plan"),
    (r"^release-templates/$", "release template"),
    (r"release-plans/<\w+>/milestones/$", "milestone"),
    (r"features/<\w+>/plans/<\w+>/milestones/$", "milestone"),
    (r"progressions/<plan_id>$", "release plan"),
    (r"progressions/$", "milestone"),
    (r"release-plans/<\w+>/safeguards/$", "safeguard"),
    (r"safeguards/$", "safeguard of a flag"),
    (r"features/<\w+>/impact-metrics/(config/)?$", "chart of a flag"),
    (r"impact-metrics/(config/)?$", "chart of impact metrics"),
    (r"plan-templates/<\w+>/milestones/$", "milestone of a template"),
    (r"^release-templates/<\w+>/milestones/$", "milestone of a template"),
    (r"release-templates/<\w+>/milestones/$", "milestone of a project's template"),
    (r"milestones/<\w+>/strategies/$", "strategy of a milestone"),
    (r"<\w+>/strategies/$", "strategy"),
    (r"strategies/$", "strategy type"),
    (r"segments/$", "segment"),
    (r"playground/contexts/$", "saved context"),
    (r"playground/users/$", "user run"),
    (r"flags?[/-]views/$", "view"),
    (r"analyses/$", "analysis"),
    (r"move/$", "move"),
    (r"strategy-types/$", "strategy type"),
    (r"tag-types/$", "tag type"),
    (r"feature-types/$", "flag type"),
    (r"tags/$", "tag type"),
    (r"tags/<\w+>/$", "tag value"),
    (r"(invite-link/tokens|access/invite-links)/$", "invite link"),
    (r"scim/v2/Users/$", "person"),
    (r"scim/v2/Groups/$", "group"),
    (r"scim/v2/(Schemas|ResourceTypes)/$", "link"),
    (r"invite/$", "invite token"),
    (r"api-tokens/$", "token"),
    (r"(user|account)/tokens/$", "personal token"),
    (r"account/sessions/$", "session"),
    (r"account/two-step/(passkeys/)?$", "second factor"),
    (r"token/$", "service account token"),
    (r"groups/$", "group"),
    (r"projects/<\w+>/role/$", "role"),
    (r"projects/<\w+>/users/$", "person"),
    (r"projects/roles/$", "role"),
    (r"access/people/$", "person"),
    (r"service-accounts/<\w+>/tokens/$", "service account token"),
    (r"members/$", "person"),
    (r"service-accounts/$", "service account"),
    (r"access/tokens/$", "token"),
    (r"roles/$", "role"),
    (r"service-account/$", "service account"),
    (r"(feedback|splash)/$", "link"),  # any text
    (r"user-admin/$", "person"),
    (r"projects/<\w+>/users/$", "person"),
    (r"/role/$", "role"),
    (r"(applications|instances)/$", "application"),
    (r"metrics/features/$", "flag"),
)
_CONVERTERS = re.compile(r"<\w+:")


_FLAG = "/api/admin/projects/<str:project_id>/features/<str:name>"
_IN_ENVIRONMENT = f"{_FLAG}/environments/<str:environment>"
_VARIANTS = [{"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
_SWITCHES = "/api/admin/projects/<str:project_id>/bulk_features/environments/<str:environment>"
_TAGS_OF_MANY = {
    "features": ["cart"],
    "tags": {"addedTags": [{"type": "team", "value": "blue"}], "removedTags": []},
}

# Bodies for what looks at its body before it looks at rights; a refusal must be for the right reason.
BODIES: dict[tuple[str, str], Any] = {
    ("post", "/api/admin/features-batch/import"): {
        "project": "shop",
        "environment": "production",
        "data": {"features": [{"name": "new"}], "featureStrategies": [], "tagTypes": []},
    },
    ("post", "/api/admin/flags-as-code/plan"): {"flags": [{"project": "shop", "flag": {"name": "new"}}]},
    ("post", "/api/admin/flags-as-code/apply"): {"flags": [{"project": "shop", "flag": {"name": "new"}}]},
    ("post", "/api/admin/projects/<str:project_id>/environments/promote"): {
        "from": "development",
        "to": "production",
        "features": ["cart"],
    },
    ("post", "/api/admin/projects/<str:project_id>/features"): {"name": "new"},
    ("patch", _FLAG): [{"op": "replace", "path": "/stale", "value": True}],
    ("post", f"{_FLAG}/changeProject"): {"newProjectId": "default"},
    ("post", f"{_FLAG}/clone"): {"name": "copy"},
    ("post", f"{_FLAG}/dependencies"): {"feature": "third"},
    ("post", f"{_FLAG}/lifecycle/complete"): {"status": "kept"},
    ("post", f"{_FLAG}/revert"): {"at": "MOMENT"},
    ("post", "/api/admin/environments/<str:name>/revert"): {"at": "MOMENT"},
    ("post", f"{_FLAG}/link"): {"url": "https://example.org/2"},
    ("put", f"{_FLAG}/link/<str:link_id>"): {"url": "https://example.org/3"},
    ("put", f"{_IN_ENVIRONMENT}/variants"): _VARIANTS,
    ("put", f"{_FLAG}/variants-batch"): {"variants": _VARIANTS, "environments": ["production"]},
    ("patch", f"{_IN_ENVIRONMENT}/variants"): [{"op": "add", "path": "/0", "value": _VARIANTS[0]}],
    ("post", f"{_IN_ENVIRONMENT}/strategies"): {"name": "default"},
    ("post", f"{_IN_ENVIRONMENT}/strategies/set-sort-order"): [{"id": "STRATEGY", "sortOrder": 1}],
    ("patch", f"{_IN_ENVIRONMENT}/strategies/<str:strategy_id>"): [
        {"op": "replace", "path": "/disabled", "value": True}
    ],
    ("post", "/api/admin/projects/<str:project_id>/archive"): {"features": ["cart"]},
    ("post", "/api/admin/projects/<str:project_id>/revive"): {"features": ["gone"]},
    ("post", "/api/admin/projects/<str:project_id>/delete"): {"features": ["gone"]},
    ("post", "/api/admin/projects/<str:project_id>/stale"): {"features": ["cart"], "stale": True},
    ("post", "/api/admin/segments/strategies"): {
        "projectId": "shop",
        "environmentId": "production",
        "strategyId": "STRATEGY",
        "segmentIds": [],
    },
    ("put", "/api/admin/projects/<str:project_id>/environments/<str:environment>/change-requests/config"): {
        "changeRequestsEnabled": True
    },
    ("put", "/api/admin/api-tokens/<str:token>"): {"expiresAt": None},
    ("post", "/api/admin/features/<str:name>/tags"): {"type": "team", "value": "blue"},
    ("post", "/api/admin/projects/<str:project_id>/tags"): _TAGS_OF_MANY,
    ("put", "/api/admin/projects/<str:project_id>/tags"): _TAGS_OF_MANY,
    ("post", "/api/admin/projects/<str:project_id>/archive/validate"): {"features": ["cart"]},
    ("post", f"{_SWITCHES}/on"): {"features": ["cart"]},
    ("post", f"{_SWITCHES}/off"): {"features": ["cart"]},
}


def body_for(method: str, route: Route, world: dict[str, Any]) -> Any:
    body = BODIES.get((method, str(route)), {})
    text = json.dumps(body).replace("STRATEGY", str(world["strategy"]))
    return json.loads(text.replace("MOMENT", world["moment"]))


def build(shop: Any) -> dict[str, Any]:
    """Kind of thing → what names it in an address."""
    now = timezone.now()
    integration = make_integration("https://receiver.example.org/hook")
    source = make_source()
    flag, parent = (
        Flag.objects.create(name=name, project=shop, created_at=now) for name in ("cart", "checkout")
    )
    Flag.objects.create(name="third", project=shop, created_at=now)
    for name in ("gone", "features"):  # the second has an address of its own: DELETE /archive/features
        Flag.objects.create(name=name, project=shop, created_at=now, archived_at=now)
    for one in (flag, parent):
        FlagEnvironment.objects.bulk_create(
            FlagEnvironment(flag=one, environment_id=name) for name in ("development", "production")
        )
    strategy = Strategy.objects.create(flag=flag, environment_id="production", name="default")
    Dependency.objects.create(flag=flag, parent=parent)
    TagType.objects.create(name="team")
    FlagTag.objects.create(flag=flag, tag_type_id="team", value="green")
    values = [{"value": "gold"}]
    robot = make_user("robot", is_service=True)
    make_token("personal", user=robot, name="of robot")
    make_token("backend", projects=[shop.id], environment="production", name="of shop")
    person = make_user("somebody")
    User.objects.filter(pk=person.pk).update(created_at=now - timedelta(days=400))  # not seen since
    make_token("personal", user=person, name="of somebody")
    invite = InviteLink.objects.create(
        name="Team",
        key="invite",
        token_hash=hashlib.sha256(b"invite-token").hexdigest(),
        role_id=BuiltIn.VIEWER.value,
        expires_at=now + timedelta(days=30),
    )
    ids = dict(ApiToken.objects.values_list("name", "id"))
    request = ChangeRequest.objects.create(
        project=shop, environment_id="production", author=person, author_name="somebody", state="In review"
    )
    switch = {"feature": "cart", "action": "updateEnabled", "payload": {"enabled": True}, "made_from": False}
    change = Change.objects.create(request=request, author_name="somebody", **switch)
    return build_plans(flag) | {
        "moment": now.isoformat(),
        "change request": request.pk,
        "change": change.pk,
        "in a month": (now + timedelta(days=30)).isoformat(),
        "invite link": invite.key,
        "invite token": "invite-token",
        "project": shop.id,
        "integration": integration.pk,
        "delivery": Delivery.objects.create(integration=integration, sent_at=now).pk,
        "provider": "webhook",
        "signal source": source.pk,
        "signal source name": source.name,
        "signal rule": make_rule(source, author=person).pk,
        "flag": flag.name,
        "form": f"projects/{shop.id}/features/{flag.name}/switch",
        "archived flag": "gone",
        "parent": parent.name,
        "environment": "production",
        "strategy": strategy.pk,
        "link": FlagLink.objects.create(flag=flag, url="https://example.org").pk,
        "flag type": "release",
        "tag type": "team",
        "tag value": "green",
        "strategy type": StrategyType.objects.create(name="custom").name,
        "segment": Segment.objects.create(name="vip").pk,
        "saved context": SavedContext.objects.create(name="Ada").pk,
        "user run": UserRun.objects.create(
            projects=[shop.id], environment="production", state="done", caller_name="robot", created_at=now
        ).pk,
        "analysis": make_analysis(flag).pk,
        "view": FlagView.objects.create(user=person, name="Mine", query="owner=mine").pk,
        "context field": ContextField.objects.create(name="plan", legal_values=values).name,
        "project context field": ContextField.objects.create(
            name="basket", legal_values=values, project=shop
        ).name,
        "legal value": "gold",
        "operation": "getProjects",
        "kind of file": "flag",
        "token": ids["of shop"],
        "personal token": ids["of somebody"],
        "service account token": ids["of robot"],
        "group": Group.objects.create(name="Team").pk,
        "role": Role.objects.create(name="Custom", type="custom").pk,
        "service account": robot.pk,
        "second factor": Authenticator.objects.create(user=person, type="totp", data={}).pk,
        "session": UserSession.objects.create(user=person, ip="192.0.2.1", session_key="of somebody").pk,
        "person": person.pk,
        "move": InstallationMove.objects.create(step="plan", address="https://unleash.example.com").pk,
        "import": ImportRun.objects.create(
            project=shop.id, environment="production", state="done", source="api", caller_name="robot"
        ).pk,
        "event": AuditEvent.objects.create(
            type="feature-tagged",
            project=shop.id,
            feature=flag.name,
            actor_name="somebody",
            after={"type": "team", "value": "green"},
        ).pk,
        "application": Application.objects.create(name="web", folded_name="web", created_at=now).name,
    }


def make_analysis(flag: Flag) -> Analysis:
    """A failed one, of somebody else."""
    design = Design(since=flag.created_at, until=flag.created_at, measures=[read_measure("mean", "revenue")])
    return Analysis.objects.create(
        flag=flag,
        environment_id="production",
        name="Does it sell?",
        design=design.to_json(),
        sight={"projects": [flag.project_id], "withDeleted": False},
        state="failed",
        problem="file: has no row in the period",
        caller_name="robot",
        created_at=flag.created_at,
    )


def build_strategies(shop: Any) -> dict[str, Any]:
    """The flags have a variant, and a strategy with a segment of all projects; ``moment`` was before."""
    world = build(shop)
    FlagEnvironment.objects.update(variants=[{"name": "green", "weight": 1000, "weightType": "variable"}])
    for flag in Flag.objects.filter(name__in=["checkout", "third"]):
        Strategy.objects.create(flag=flag, environment_id="production", name="default")
    StrategySegment.objects.create(strategy_id=world["strategy"], segment_id=world["segment"])
    FlagEnvironment.objects.get_or_create(flag=Flag.objects.get(name="third"), environment_id="production")
    return world


def build_plans(flag: Flag) -> dict[str, Any]:
    """A release template, and a running plan with a safeguard."""
    rollout = {
        "name": "flexibleRollout",
        "title": None,
        "parameters": {"rollout": "5"},
        "id": "strategy",
        "sortOrder": 0,
    }
    strategies = [rollout | {"constraints": [], "variants": [], "segments": [], "disabled": False}]
    template = ReleaseTemplate.objects.create(name="Careful")
    own = ReleaseTemplate.objects.create(name="Careful", project=flag.project)
    plan = ReleasePlan.objects.create(flag=flag, environment_id="production", name="Careful", state="running")
    first, _, own_first, _, active, following = (
        Milestone.objects.create(**owner, name="M", place=place, strategies=strategies)
        for owner in ({"template": template}, {"template": own}, {"plan": plan})
        for place in range(2)
    )
    plan.active, plan.since = active, flag.created_at
    plan.save()
    return {
        "release template": template.pk,
        "milestone of a template": first.pk,
        "release template of a project": own.pk,
        "milestone of a project's template": own_first.pk,
        "strategy of a milestone": "strategy",
        "release plan": plan.pk,
        "verb of a plan": "start",
        "milestone": following.pk,
        "safeguard": Safeguard.objects.create(
            plan=plan, metric="errors", aggregation="rps", time_range="hour"
        ).pk,
        "safeguard of a flag": Safeguard.objects.create(
            flag=flag, environment_id="production", metric="errors", aggregation="rps", time_range="hour"
        ).pk,
        **{
            name: MetricChart.objects.create(
                flag=owner, metric="errors", aggregation="rps", time_range="hour"
            ).pk
            for name, owner in (("chart of a flag", flag), ("chart of impact metrics", None))
        },
    }


def address(route: Route, world: dict[str, Any]) -> str:
    """The route's address in this world. AssertionError where PLACES has nothing for a placeholder."""
    pattern = _CONVERTERS.sub("<", route.pattern)
    values = {}
    for match in re.finditer(r"<(\w+)>", pattern):
        befores = pattern[: match.end()], pattern[: match.start()]
        found = (kind for place, kind in PLACES if any(re.search(place, before) for before in befores))
        kind = next(found, None)
        assert kind, f"{route}: say in PLACES what stands for <{match[1]}>"
        values[match[1]] = world[kind]
    return route.path(values)

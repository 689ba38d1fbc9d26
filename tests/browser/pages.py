"""Every page of the console, checked in both themes by ``test_every_page.py``. A new page gets a line here.

An address fits the tests' scenery and the demo's data alike: ``screenshots.py`` visits the same pages there. What is
numbered stands in braces, see ``filled``. ``test_every_page.py`` finds the pages of Data fixes itself.
"""

from typing import Any

ADA = "environment=production&context.userId=42&context.plan=pro&context.appVersion=4.5.1&context.country=NO"

# Flags whose only strategy in production is of another kind each.
STRATEGIES = ("apple-pay", "search-v2", "winter-sale", "image-cdn-switch")

PAGES = [
    "/",
    "/activity/",
    "/activity/?kind=flags&sort=when",
    "/activity/{change}/revert",
    "/what-happened/",
    "/settings/",
    "/requests/",
    "/requests/?show=waiting&project=checkout",
    "/access/agents/",
    "/projects/checkout/settings/approvals/",
    "/projects/checkout/settings/tokens/",
    "/projects/checkout/settings/integrations/",
    "/what-happened/?from=2026-01-01&all=yes&since=2026-01-01T00:00:00Z&until=2100-01-01T00:00:00Z",
    "/account/",
    "/account/password/",
    "/account/tokens/new/",
    "/account/confirm/?next=/account/two-step/",
    "/account/two-step/",
    "/account/two-step/app/",
    "/account/two-step/recovery-codes/",
    "/account/two-step/passkeys/new/",
    "/import/",
    "/import/?project=checkout",
    "/imports/",
    "/move/",
    "/move/history/",
    "/installation/",
    "/relays/",
    "/nowhere/",
    "/playground/",
    f"/playground/?{ADA}",
    f"/playground/?{ADA}&environment=development",
    f"/playground/?{ADA}&as=json",
    "/playground/?context.currentTime=tomorrow",
    f"/playground/flag/dark-theme/?{ADA}",
    f"/playground/flag/search-v2/?{ADA}",
    "/playground/?saved=Norwegian%20pro%20user",
    "/playground/?environment=production&at=2020-01-01T00:00:00Z",
    "/playground/compare/",
    "/playground/who-changes/",
    "/playground/who-changes/?from=production&to=development&users=200",
    "/playground/who-changes/?from=production&to=development&users=200&only=checkout-redesign",
    "/playground/contexts/",
    "/playground/expectations/",
    "/playground/expectations/new",
    "/playground/expectations/?met=no",
    "/playground/contexts/new?context.userId=42",
    "/playground/contexts/{saved}/",
    "/playground/contexts/{saved}/delete",
    "/playground/users/",
    "/playground/assignments/?flag=dark-theme",
    "/playground/incidents/",
    "/search/",
    "/search/?q=check",
    "/search/?q=check&kind=flags",
    "/flags/",
    "/projects/checkout/features/checkout-redesign/?as=42",
    "/flags/?as=saved:Norwegian%20pro%20user",
    "/projects/checkout/?as=",
    "/stale-flags/",
    "/projects/checkout/features/checkout-redesign/insights/",
    "/projects/checkout/features/checkout-redesign/insights/?period=90d",
    "/flags/?rollout=differs&sort=-in-production",
    "/flags/archive?name=checkout-redesign&name=portal-read-only",
    "/flags/switch?environment=production&enabled=off&name=checkout-redesign&name=portal-read-only",
    "/flags/tags?name=checkout-redesign&name=portal-read-only",
    "/projects/",
    "/projects/new/",
    "/projects/checkout/",
    "/projects/legacy-portal/?show=archived",
    "/projects/checkout/features/archive?name=checkout-redesign",
    "/projects/checkout/features/checkout-redesign/switch?environment=production&enabled=off",
    "/projects/checkout/features/gift-cards/parents?do=remove&feature=checkout-redesign",
    "/projects/checkout/features/gift-cards/order?environment=production",
    "/projects/checkout/?in-production=on&sort=-in-production",
    "/projects/checkout/features/switch?environment=production&enabled=off&name=checkout-redesign&name=gift-cards",
    "/projects/checkout/features/tags?name=checkout-redesign&name=gift-cards",
    "/environments/",
    "/environments/new",
    "/environments/production/",
    "/environments/production/delete",
    "/environments/production/revert?at=2026-01-01T00:00:00Z",
    "/projects/checkout/environments/",
    "/projects/checkout/environments/?show=all&from=production&to=development",
    "/projects/checkout/change-requests/",
    "/projects/checkout/features/vip-lounge/",
    "/projects/checkout/features/gift-cards/environments/production/plans/new/",
    "/projects/checkout/features/vip-lounge/plans/{plan}/",
    "/projects/checkout/features/vip-lounge/plans/{plan}/start/",
    "/projects/checkout/features/gift-cards/environments/production/safeguards/",
    "/projects/checkout/features/gift-cards/impact-metrics/",
    "/impact-metrics/",
    "/release-plans/",
    "/release-templates/",
    "/release-templates/new/",
    "/release-templates/{template}/",
    "/release-templates/{template}/remove",
    "/release-templates/{template}/milestones/{milestone}/strategies/new",
    "/projects/checkout/environments/production/approvals",
    "/projects/checkout/applications/",
    "/projects/checkout/connect/",
    "/projects/checkout/connect/?language=react&flag=gift-cards",
    "/projects/checkout/connect/?language=openfeature-in-python&environment=production&since=0",
    "/connect/",
    "/applications/",
    "/applications/web-shop/",
    "/projects/legacy-portal/delete/",
    "/projects/default/delete/",
    "/access/roles/",
    "/access/roles/1/",
    "/access/roles/5/",
    "/access/roles/5/?by=holder",
    "/access/roles/new/",
    "/access/roles/new/?type=root-custom",
    "/access/roles/5/delete/",
    "/access/groups/",
    "/access/groups/new/",
    "/access/groups/{group}/",
    "/access/groups/{group}/edit/",
    "/access/groups/{group}/grant/",
    "/access/groups/{group}/delete/",
    "/access/tokens/",
    "/access/tokens/new/",
    "/access/tokens/new/?type=automation",
    "/access/tokens/{token}/revoke/",
    "/access/invite-links/",
    "/access/invite-links/new/",
    "/access/scim/",
    "/access/people/",
    "/access/people/new/",
    "/access/people/{person}/",
    "/access/people/{person}/edit/",
    "/access/people/{person}/grant/",
    "/access/people/{person}/delete/",
    "/access/people/{person}/reset-password/",
    "/access/people/{person}/two-step/remove/",
    "/access/people/{person}/identity/unlink/",
    "/access/service-accounts/",
    "/access/service-accounts/new/",
    "/access/service-accounts/{service}/",
    "/access/service-accounts/{service}/edit/",
    "/access/service-accounts/{service}/delete/",
    "/access/service-accounts/{service}/tokens/new/",
    "/projects/checkout/access/",
    "/projects/checkout/access/invite/",
    "/admin/",
    "/admin/projects/project/",
    "/admin/projects/project/legacy-portal/change/",
    "/admin/projects/project/legacy-portal/delete/",
    "/admin/projects/flag/",
    "/api/docs/",
    "/api/docs/?q=flag",
    "/api/docs/?q=nosuch",
    "/api/docs/importFeatures/",
    "/api/docs/getPlayground/",
    "/api/docs/getProject/",
    "/api/docs/getStreaming/",
    "/projects/checkout/features/new",
    "/projects/checkout/features/checkout-redesign/",
    "/projects/checkout/features/gift-cards/",
    "/projects/checkout/features/checkout-redesign/edit",
    "/projects/checkout/features/checkout-redesign/clone",
    "/projects/checkout/features/checkout-redesign/move",
    "/projects/checkout/features/checkout-redesign/link/{link}/",
    "/projects/checkout/features/checkout-redesign/revert?event={version}",
    "/projects/legacy-portal/features/portal-login/",
    "/projects/checkout/features/checkout-redesign/strategies/new?environmentId=production",
    "/projects/checkout/features/gift-cards/strategies/edit?environmentId=production&strategyId={strategy}",
    *(
        f"/projects/checkout/features/{flag}/strategies/edit?environmentId=production&strategyId={{{flag}}}"
        for flag in STRATEGIES
    ),
    "/projects/checkout/features/gift-cards/variants?environmentId=production",
    "/projects/legacy-portal/settings/",
    "/projects/checkout/environments/production/strategy",
    "/projects/legacy-portal/features/delete?name=portal-login",
    "/segments/",
    "/segments/new",
    "/segments/{segment}/",
    "/segments/{segment}/delete",
    "/strategy-types/",
    "/strategy-types/new",
    "/strategy-types/hostGroup/",
    "/integrations/",
    "/integrations/new/webhook",
    "/integrations/new/slack-app",
    "/integrations/{integration}/",
    "/integrations/{integration}/deliveries/",
    "/integrations/{integration}/signing-key",
    "/integrations/{integration}/delete",
    "/calendar/",
    "/signals/",
    "/signals/new/",
    "/signals/{source}/",
    "/signals/{source}/token",
    "/signals/{source}/delete",
    "/signals/{source}/rules/new/",
    "/signals/{source}/rules/{rule}/",
    "/signals/{source}/rules/{rule}/try",
    "/signals/{source}/rules/{rule}/delete",
    "/tag-types/",
    "/tag-types/new",
    "/tag-types/simple/",
    "/context-fields/",
    "/context-fields/new",
    "/context-fields/plan/",
    "/context-fields/plan/delete",
]

# The pages that are there to refuse; every other one answers 200.
MEANT_REFUSALS = {"/nowhere/": 404, "/playground/?context.currentTime=tomorrow": 400}


def filled(address: str) -> str:
    """The address with what stands in braces: the number of the first group, person, service account, ….

    "person" is somebody other than the administrator who looks at the pages, "strategy" one of gift-cards.
    """
    if "{" not in address:
        return address
    from flagadmin.core.audit.models import AuditEvent
    from groups.models import ApiToken, Group, User
    from groups.permissions import BuiltIn
    from integrations.models import Integration, SignalRule, SignalSource
    from playground.models import SavedContext
    from projects.models import FlagLink, Segment, Strategy
    from releases.models import Milestone, ReleasePlan, ReleaseTemplate

    accounts = User.objects.exclude(root_role=BuiltIn.ADMIN)
    rows: dict[str, Any] = {
        "group": Group.objects,
        "person": accounts.filter(is_service=False),
        "service": accounts.filter(is_service=True),
        "token": ApiToken.objects.filter(user=None),
        "segment": Segment.objects,
        "saved": SavedContext.objects,
        "integration": Integration.objects,
        "source": SignalSource.objects,
        "rule": SignalRule.objects,
        "plan": ReleasePlan.objects.filter(flag__name="vip-lounge"),
        "template": ReleaseTemplate.objects,
        "milestone": Milestone.objects.exclude(template=None),
        "link": FlagLink.objects.filter(flag__name="checkout-redesign"),
        "change": AuditEvent.objects.filter(type="feature-environment-enabled"),
        "version": AuditEvent.objects.filter(feature="checkout-redesign"),
        "strategy": Strategy.objects.filter(flag__name="gift-cards", environment="production"),
    } | {flag: Strategy.objects.filter(flag__name=flag, environment="production") for flag in STRATEGIES}
    name = address[address.index("{") + 1 : address.index("}")]
    return filled(
        address.replace(f"{{{name}}}", str(rows[name].order_by("pk").values_list("pk", flat=True)[0]))
    )


def meant_status(address: str) -> int:
    return MEANT_REFUSALS.get(address, 200)


def row(page: Any, flag: str) -> Any:
    """The line of a flag in the results of the playground."""
    return page.locator("tr", has=page.get_by_role("link", name=flag, exact=True))

"""The demo's flags. They use every strategy, operator and reason at least once.

For user 42 in production, each reason has a flag: off because of its bucket, a segment or its parent, undecided until
an SDK evaluates it, and on with a variant.
"""

from collections.abc import Iterator
from dataclasses import replace

from flagadmin.core.document import Document
from flagadmin.demo.definitions import (
    DemoEnvironment,
    DemoFlag,
    everyone,
    off,
    on,
    rollout,
    strategy,
    variant,
    when,
)

DEFAULT = [
    DemoFlag(
        name="maintenance-banner",
        description="Shows the maintenance notice on every page.",
        type="kill-switch",
        production=off(everyone()),
        tags=("operations",),
    ),
    DemoFlag(
        name="new-date-picker",
        description="The date picker of the new design system.",
        production=off(rollout(100)),
    ),
    DemoFlag(
        name="release-notes-popup",
        description="Shown on some page views, to anyone.",
        type="experiment",
        production=on(rollout(30, by="random")),
    ),
    DemoFlag(
        name="debug-toolbar",
        description="For support staff, by user id.",
        type="permission",
        production=on(strategy("userWithId", {"userIds": "7, 11, 42"})),
        tags=("support",),
    ),
    DemoFlag(
        name="holiday-logo",
        description="The winter logo over the holidays.",
        type="operational",
        production=on(
            everyone(
                where=[
                    when("currentTime", "DATE_AFTER", "2026-12-01T00:00:00Z"),
                    when("currentTime", "DATE_BEFORE", "2027-01-07T00:00:00Z"),
                ]
            )
        ),
    ),
]

CHECKOUT = [
    DemoFlag(
        name="apple-pay",
        description="Apple Pay as a payment method, in newer app versions.",
        production=on(
            everyone(
                where=[when("appVersion", "SEMVER_GT", "5.0.0"), when("country", "IN", "US", "DE")],
            )
        ),
        development=on(
            everyone(
                where=[when("appVersion", "SEMVER_GT", "5.0.0"), when("country", "IN", "US", "DE", "NO")],
            )
        ),
        tags=("payments",),
    ),
    DemoFlag(
        name="one-click-pay",
        description="Pay with the saved card and skip the review page.",
        production=on(rollout(100)),
        development=on(rollout(100)),
        tags=("payments",),
        impression_data=True,
    ),
    DemoFlag(
        name="checkout-redesign",
        description="The one-page checkout.",
        production=on(rollout(10)),
        links=("https://tickets.example/CHECKOUT-12",),
        impression_data=True,
    ),
    DemoFlag(
        name="gift-cards",
        description="Gift cards, which require the redesigned checkout.",
        production=on(everyone(), variants=[variant("by-mail", 500), variant("printed", 500)]),
        development=on(everyone(), variants=[variant("by-mail", 500), variant("printed", 500)]),
        parents=({"feature": "checkout-redesign", "enabled": True},),
    ),
    DemoFlag(
        name="express-shipping",
        description="Express delivery for larger carts.",
        production=on(
            everyone(
                where=[when("cartTotal", "NUM_GTE", "50"), when("country", "NOT_IN", "IS", "FO")],
            )
        ),
        development=on(
            everyone(
                where=[when("cartTotal", "NUM_GTE", "50"), when("country", "NOT_IN", "IS", "FO")],
            )
        ),
    ),
    DemoFlag(
        name="small-cart-hint",
        description="Shows the amount left to free shipping.",
        production=on(
            everyone(where=[when("cartTotal", "NUM_LT", "30"), when("cartTotal", "NUM_GT", "0")]),
            everyone(where=[when("cartTotal", "NUM_EQ", "0")], disabled=True, title="Empty carts too"),
        ),
        stale=True,
    ),
    DemoFlag(
        name="fraud-check-v3",
        description="Stricter fraud checks, starting with our own offices.",
        type="operational",
        production=on(strategy("remoteAddress", {"IPs": "10.0.0.0/8, 192.168.1.7, 2001:db8::/32"})),
    ),
    DemoFlag(
        name="coupon-stacking",
        description="Several coupons per order.",
        type="experiment",
        production=on(
            rollout(50, disabled=True, title="Everyone, later"),
            rollout(5, where=[when("plan", "IN", "pro", "enterprise", caseInsensitive=True)]),
        ),
        stale=True,
    ),
    DemoFlag(
        name="buy-now-button",
        description="Which button text sells better?",
        type="experiment",
        production=on(
            rollout(
                100,
                variants=[
                    variant("buy-now", 500, payload=("string", "Buy now")),
                    variant("order", 500, payload=("string", "Order")),
                ],
            )
        ),
        impression_data=True,
    ),
    DemoFlag(
        name="old-cart",
        description="The cart used until 2024.",
        production=off(),
        archived=True,
    ),
]

STOREFRONT = [
    DemoFlag(
        name="search-v2",
        description="The new search, with two ranking models.",
        production=on(
            rollout(
                60,
                where=[when("country", "NOT_IN", "US")],
                variants=[
                    variant("ranker-a", 500, payload=("json", '{"model": "a"}')),
                    variant("ranker-b", 500, payload=("json", '{"model": "b"}')),
                ],
            )
        ),
        tags=("search",),
        impression_data=True,
    ),
    DemoFlag(
        name="dark-theme",
        description="Dark mode for paying customers.",
        production=on(
            rollout(
                50,
                where=[when("plan", "IN", "pro", "enterprise"), when("appVersion", "SEMVER_GT", "4.2.0")],
            )
        ),
        tags=("design",),
    ),
    DemoFlag(
        name="beta-dashboard",
        description="The new dashboard, for beta testers.",
        production=on(everyone(segments=["beta-testers"], where=[when("region", "IN", "eu")])),
    ),
    DemoFlag(
        name="returns-portal",
        description="Self-service returns within the EU.",
        production=on(everyone(segments=["eu-customers"])),
    ),
    DemoFlag(
        name="image-cdn-switch",
        description="Images from the second CDN, by host group.",
        type="operational",
        production=on(strategy("hostGroup", {"group": "edge-2"})),
    ),
    DemoFlag(
        name="recommendations",
        description="Products that other customers bought; editors can force a list.",
        type="experiment",
        production=on(
            everyone(),
            variants=[
                variant("bestsellers", 600, payload=("string", "bestsellers")),
                variant("personal", 300, payload=("string", "personal")),
                variant("none", 100, kind="fix")
                | {"overrides": [{"contextName": "plan", "values": ["enterprise"]}]},
            ],
        ),
    ),
    DemoFlag(
        name="product-video",
        description="Videos on product pages, starting with staff.",
        production=on(everyone(where=[when("email", "STR_ENDS_WITH", "@example.com", caseInsensitive=True)])),
    ),
    DemoFlag(
        name="ranking-explainer",
        description="Explains the order of results; requires the second ranking model.",
        production=on(),
        parents=({"feature": "search-v2", "enabled": True, "variants": ["ranker-b"]},),
    ),
    DemoFlag(
        name="legacy-search-box",
        description="The old search box, wherever the new search is off.",
        production=on(),
        parents=({"feature": "search-v2", "enabled": False},),
    ),
    DemoFlag(
        name="size-guide",
        description="For shops with a translated guide.",
        production=on(everyone(where=[when("locale", "REGEX", "^(en|de|nb)(-|$)")])),
    ),
    DemoFlag(
        name="partner-links",
        description="Partner links for their campaigns.",
        production=on(
            everyone(where=[when("campaign", "STR_STARTS_WITH", "partner-")]),
            everyone(where=[when("campaign", "STR_CONTAINS", "affiliate")]),
        ),
    ),
]

PLATFORM = [
    DemoFlag(
        name="api-rate-limits",
        description="The new limits, rolled out by account.",
        type="operational",
        production=on(strategy("gradualRolloutUserId", {"percentage": "25", "groupId": "api-rate-limits"})),
    ),
    DemoFlag(
        name="new-scheduler",
        description="The new job scheduler, by session.",
        type="operational",
        production=on(strategy("gradualRolloutSessionId", {"percentage": "75", "groupId": "new-scheduler"})),
    ),
    DemoFlag(
        name="request-tracing",
        description="Traces a share of the calls.",
        type="operational",
        production=on(strategy("gradualRolloutRandom", {"percentage": "20"})),
    ),
    DemoFlag(
        name="read-replica",
        description="Reads from the replica, by host.",
        type="operational",
        production=on(strategy("applicationHostname", {"hostNames": "api-1, api-2"})),
    ),
    DemoFlag(
        name="internal-tools",
        description="Links to internal tools, within our networks.",
        type="permission",
        production=on(everyone(where=[when("remoteAddress", "IN_CIDR", "10.0.0.0/8", "192.168.0.0/16")])),
    ),
    DemoFlag(
        name="batch-exports",
        description="Batch exports, for builds that support them.",
        production=on(
            everyone(where=[when("build", "NUM_LTE", "2000"), when("appVersion", "SEMVER_GTE", "4.0.0")]),
            everyone(where=[when("appVersion", "SEMVER_EQ", "3.9.9")]),
            everyone(where=[when("appVersion", "SEMVER_LTE", "2.1.0")]),
            everyone(
                where=[
                    when("appVersion", "SEMVER_LT", "1.0.0", inverted=True),
                    when("build", "NUM_GT", "9000"),
                ]
            ),
        ),
    ),
]

LEGACY_PORTAL = [
    DemoFlag(name="portal-banner", description="The farewell banner.", production=on()),
    DemoFlag(
        name="portal-read-only",
        description="Makes the portal read-only.",
        type="kill-switch",
        production=on(rollout(100)),
    ),
    DemoFlag(name="portal-export", description="Export of old orders.", production=off(), archived=True),
    DemoFlag(name="portal-login", description="The portal's login.", production=off(), archived=True),
]

FLAGS = {
    "default": DEFAULT,
    "checkout": CHECKOUT,
    "storefront": STOREFRONT,
    "platform": PLATFORM,
    "legacy-portal": LEGACY_PORTAL,
}

ENVIRONMENTS = ("development", "production")

PROJECTS = {
    "checkout": ("Checkout", "From the cart to the receipt."),
    "storefront": ("Storefront", "What visitors see."),
    "platform": ("Platform", "Services behind the shop."),
    "legacy-portal": ("Legacy portal", "The customer portal, to be switched off."),
}

SEGMENTS = {
    "beta-testers": ("Users who signed up for beta versions.", [when("userId", "IN", "7", "11", "1001")]),
    "eu-customers": (
        "Customers in the European Union.",
        [when("country", "IN", "AT", "BE", "DE", "DK", "ES", "FI", "FR", "IE", "IT", "NL", "PL", "SE")],
    ),
}

SAVED_CONTEXTS: dict[str, tuple[str, Document, list[Document]]] = {
    "Norwegian pro user": (
        "Pays by invoice.",
        {"userId": "42", "properties": {"plan": "pro", "appVersion": "4.5.1", "country": "NO"}},
        [
            {"flag": "one-click-pay", "environment": "production", "enabled": True},
            {"flag": "checkout-redesign", "environment": "production", "enabled": True},
        ],
    ),
    "Beta tester": (
        "Signed up for beta versions.",
        {"userId": "7", "properties": {"plan": "free", "country": "DE"}},
        [{"flag": "debug-toolbar", "environment": "production", "enabled": True}],
    ),
    "Visitor": ("Not logged in.", {"sessionId": "s-1001", "properties": {"country": "US"}}, []),
}

STRATEGY_TYPES = {
    "hostGroup": ("On for a group of hosts; the SDK knows its own.", ["group"]),
    "userWithId": ("On for the users listed.", ["userIds"]),
    "gradualRolloutUserId": ("On for a percentage of users.", ["percentage", "groupId"]),
    "gradualRolloutSessionId": ("On for a percentage of sessions.", ["percentage", "groupId"]),
    "gradualRolloutRandom": ("On for a percentage of calls.", ["percentage"]),
}

CONTEXT_FIELDS = {
    "plan": ("What the customer pays for.", ["free", "pro", "enterprise"], True),
    "appVersion": ("Version of the app.", [], False),
    "country": (
        "Country of the customer.",
        ["AT", "BE", "DE", "DK", "ES", "FI", "FO", "FR", "IE", "IS", "IT", "NL", "NO", "PL", "SE", "US"],
        False,
    ),
    "region": ("Where the customer's data is stored.", ["eu", "us"], False),
    "cartTotal": ("Value of the cart.", [], False),
}

VISITOR = {"userId": "42", "plan": "pro", "appVersion": "4.5.1", "country": "NO", "region": "eu"}


def tried_in_development() -> Iterator[DemoFlag]:
    """The checkout's flags for the import that awaits review: one is new, two differ, the others are unchanged."""
    changes: dict[str, DemoEnvironment] = {
        "apple-pay": on(
            everyone(
                where=[when("appVersion", "SEMVER_GT", "5.0.0"), when("country", "IN", "US", "DE", "NO")],
            )
        ),
        "checkout-redesign": on(rollout(25)),
    }
    for flag in CHECKOUT:
        if not flag.archived:
            yield replace(flag, production=changes.get(flag.name, flag.production))
    yield DemoFlag(
        name="pay-by-link",
        description="A payment link by mail for abandoned carts.",
        production=on(rollout(5)),
        tags=("payments",),
    )

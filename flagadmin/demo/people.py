"""The demo's users, groups and applications."""

from dataclasses import dataclass
from typing import Any

ADMIN = "demo"

ACCOUNTS: list[dict[str, Any]] = [
    {"username": ADMIN, "name": "Demo admin", "root_role": "Admin"},
    {"username": "maria", "name": "Maria Olsen", "root_role": "Editor"},
    {"username": "ken", "name": "Ken Adams", "root_role": "Viewer"},
    {"username": "aisha", "name": "Aisha Khan", "root_role": None},
    {"username": "lukas", "name": "Lukas Weber", "root_role": None},
    {"username": "noor", "name": "Noor Haddad", "root_role": None},
    {"username": "ci-pipeline", "name": "CI pipeline", "root_role": "Editor", "is_service": True},
]


@dataclass(frozen=True, slots=True)
class DemoGroup:
    """A group with its grants, as (role, project)."""

    name: str
    description: str
    members: tuple[str, ...]
    grants: tuple[tuple[str, str], ...]


GROUPS = [
    DemoGroup("Checkout team", "Owns the checkout.", ("aisha", "lukas"), (("Owner", "checkout"),)),
    DemoGroup("Storefront team", "Owns the storefront.", ("maria", "aisha"), (("Member", "storefront"),)),
    DemoGroup(
        "Former contractors",
        "Built the old portal.",
        ("lukas", "noor", "ken"),
        (("Member", "legacy-portal"),),
    ),
]

REVIEWERS = "Reviewer", "Approves changes of production.", "checkout", ("aisha", "maria")
"""A role that may approve change requests, its project, and the people who hold it there."""

OWNERS = [
    ("checkout", "checkout-redesign", "group", "Checkout team"),
    ("checkout", "one-click-pay", "group", "Checkout team"),
    ("platform", "api-rate-limits", "user", "lukas"),
    ("storefront", "search-v2", "group", "Storefront team"),
    ("storefront", "dark-theme", "user", "maria"),
    ("default", "maintenance-banner", "user", ADMIN),
]
"""Owners of flags: project, flag, kind and name of the owner."""


@dataclass(frozen=True, slots=True)
class DemoUsage:
    application: str
    environment: str
    sdk: str
    flags: tuple[str, ...]
    instances: int = 2
    minutes_ago: int = 3


WEB = ("search-v2", "dark-theme", "one-click-pay", "checkout-redesign", "recommendations", "returns-portal")
APP = ("apple-pay", "one-click-pay", "gift-cards", "buy-now-button")

USAGE = [
    DemoUsage(
        "web-shop", "production", "unleash-node-sdk:6.12.1", (*WEB, "buy-now-button", "gift-cards"), 6, 1
    ),
    DemoUsage("web-shop", "production", "unleash-node-sdk:6.11.0", (), 2, 2),
    DemoUsage("web-shop", "development", "unleash-node-sdk:6.11.0", WEB, 1, 70),
    DemoUsage("ios-app", "production", "unleash-ios-sdk:2.3.0", APP, 5, 9),
    DemoUsage("ios-app", "production", "unleash-ios-sdk:2.1.4", APP, 2, 9),
    DemoUsage("ios-app", "development", "unleash-ios-sdk:2.4.0-beta.1", APP, 1, 200),
    DemoUsage(
        "search-api",
        "production",
        "unleash-python-sdk:6.9.1",
        ("search-v2", "recommendations", "size-guide"),
        6,
        1,
    ),
    DemoUsage("search-api", "production", "unleash-python-sdk:6.2.0", ("search-v2",), 1, 600),
    DemoUsage(
        "job-runner",
        "production",
        "unleash-go-sdk:5.1.0",
        ("new-scheduler", "api-rate-limits", "request-tracing", "read-replica", "batch-exports"),
        3,
        2,
    ),
    DemoUsage("job-runner", "production", "unleash-go-sdk:3.9.0", ("batch-exports",), 1, 15),
    DemoUsage(
        "job-runner", "development", "unleash-go-sdk:5.1.0", ("new-scheduler", "api-rate-limits"), 1, 45
    ),
    DemoUsage(
        "portal-web", "production", "unleash-java-sdk:10.2.2", ("portal-read-only", "portal-banner"), 1, 3
    ),
]

FAVORITE_FLAGS = ("checkout-redesign", "one-click-pay", "search-v2", "maintenance-banner")
FAVORITE_PROJECT = "checkout"

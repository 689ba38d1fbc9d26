"""The history of the demo's flags over the last weeks, up to the state in ``flags.py``."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from flagadmin.core.document import Document
from flagadmin.demo.clock import at
from flagadmin.demo.definitions import (
    DemoEnvironment,
    DemoFlag,
    everyone,
    on,
    rollout,
    variant,
    when,
)
from flagadmin.demo.flags import FLAGS
from flagadmin.demo.people import OWNERS
from groups.access import EVERYTHING, Caller
from groups.models import Group, User
from projects.flags.actions import change_tags, update_flag
from projects.flags.archive.actions import archive_flags
from projects.flags.dependencies.actions import add_dependency
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.flags.name_rules import make_owner_columns
from projects.models import Strategy
from projects.strategies.actions import update_strategy

IMPORTER = "ci-pipeline"
PORTAL = "legacy-portal"

# Flags in their first imported form, for the flags that people have changed since.
_EARLIER: dict[str, DemoEnvironment] = {
    "checkout-redesign": on(rollout(5)),
    "one-click-pay": on(rollout(50)),
    "dark-theme": on(
        rollout(
            25,
            where=[when("plan", "IN", "pro", "enterprise"), when("appVersion", "SEMVER_GT", "4.2.0")],
        )
    ),
    "buy-now-button": on(
        rollout(
            100,
            variants=[
                variant("buy-now", 900, kind="fix", payload=("string", "Buy now")),
                variant("order", 100, payload=("string", "Order")),
            ],
        )
    ),
    "search-v2": on(
        rollout(
            40,
            where=[when("country", "NOT_IN", "US")],
            variants=[
                variant("ranker-a", 500, payload=("json", '{"model": "a"}')),
                variant("ranker-b", 500, payload=("json", '{"model": "b"}')),
            ],
        )
    ),
    "partner-links": on(
        everyone(where=[when("campaign", "STR_STARTS_WITH", "affiliate-")]),
        everyone(where=[when("campaign", "STR_CONTAINS", "affiliate")]),
    ),
}
_ARCHIVED_SINCE = ("portal-export", "portal-login")
_RAMPED_TODAY = "dark-theme"
_LATE_PARENT = "gift-cards"
_TRIED_IN_NORWAY = "apple-pay"


def list_second_import() -> list[DemoFlag]:
    """The storefront's flags as the pipeline imported them an hour ago."""
    return [make_earlier(flag) if flag.name == _RAMPED_TODAY else flag for flag in FLAGS["storefront"]]


def get_time_since_import(project: str) -> timedelta:
    """Returns the time since the first import of the project's flags."""
    return timedelta(days=200) if project == PORTAL else timedelta(days=37, hours=3)


def make_earlier(flag: DemoFlag) -> DemoFlag:
    """The flag in its first imported form."""
    changed: Document = {"production": _EARLIER.get(flag.name, flag.production)}
    if flag.name == _TRIED_IN_NORWAY:
        changed["development"] = flag.production
    if flag.name in _ARCHIVED_SINCE:
        changed["archived"] = False
    if flag.name == _LATE_PARENT:
        changed["parents"] = ()
    return replace(flag, **changed)


class Step(NamedTuple):
    """``ago``: the time since ``person`` did this."""

    ago: timedelta
    person: str
    act: Callable[[Caller], object]


def make_caller(user: User) -> Caller:
    """A caller with all permissions, also for actions that the person may no longer perform."""
    return Caller(user=user, rights=EVERYTHING)


def tell(now: datetime, import_storefront: Callable[[Caller], object]) -> None:
    """Performs every step as its person, at its time."""
    users = User.objects.in_bulk(field_name="username")
    for ago, person, act in sorted(_list_steps(import_storefront), key=lambda step: -step.ago):
        with at(now - ago):
            act(make_caller(users[person]))


def _list_steps(import_storefront: Callable[[Caller], object]) -> Iterator[Step]:
    shop = "checkout"
    day, hour, minute = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
    yield Step(28 * day, "aisha", _make_ramp(shop, "checkout-redesign", "7"))
    yield Step(21 * day, "aisha", _make_ramp(shop, "checkout-redesign", "10"))
    yield Step(
        14 * day, "maria", lambda caller: change_tags("api-rate-limits", [("simple", "quota")], caller=caller)
    )
    for project, flag, kind, name in OWNERS:
        yield Step(10 * day, "maria", _make_owner_change(project, flag, kind, name))
    yield Step(9 * day, "lukas", _make_ramp(shop, "one-click-pay", "75"))
    yield Step(3 * day, "maria", _switch("maintenance-banner", enable_flag))
    yield Step(3 * day - 25 * minute, "maria", _switch("maintenance-banner", disable_flag))
    yield Step(
        day + 20 * minute, "maria", lambda caller: archive_flags(PORTAL, _ARCHIVED_SINCE, caller=caller)
    )
    yield Step(2 * day, "aisha", _try_in_norway)
    yield Step(day, "lukas", _make_ramp(shop, "one-click-pay", "100"))
    yield Step(day - 40 * minute, "lukas", _create_gift_cards)
    yield Step(3 * hour, "aisha", _split_evenly)
    yield Step(hour, IMPORTER, import_storefront)
    yield Step(18 * minute, "maria", _make_ramp("storefront", _RAMPED_TODAY, "50"))


def _make_ramp(project: str, flag: str, percentage: str) -> Callable[[Caller], object]:
    def act(caller: Caller) -> object:
        strategy = _find_strategy(flag)
        parameters = strategy.parameters | {"rollout": percentage}
        return update_strategy(
            project, flag, "production", str(strategy.pk), {"parameters": parameters}, caller=caller
        )

    return act


def _make_owner_change(project: str, flag: str, kind: str, name: str) -> Callable[[Caller], object]:
    def act(caller: Caller) -> object:
        owner = Group.objects.get(name=name) if kind == "group" else User.objects.get(username=name)
        return update_flag(project, flag, make_owner_columns(kind, owner.pk), caller=caller)

    return act


def _switch(flag: str, turn: Callable[..., object]) -> Callable[[Caller], object]:
    return lambda caller: turn("default", flag, "production", caller=caller)


def _create_gift_cards(caller: Caller) -> None:
    flag = next(flag for flag in FLAGS["checkout"] if flag.name == _LATE_PARENT)
    for parent in flag.parents:
        add_dependency("checkout", flag.name, parent, caller=caller)


def _try_in_norway(caller: Caller) -> object:
    flag = next(flag for flag in FLAGS["checkout"] if flag.name == _TRIED_IN_NORWAY)
    strategy = Strategy.objects.get(flag__name=flag.name, environment="development")
    constraints = flag.development.strategies[0]["constraints"]
    return update_strategy(
        "checkout", flag.name, "development", str(strategy.pk), {"constraints": constraints}, caller=caller
    )


def _split_evenly(caller: Caller) -> object:
    strategy = _find_strategy("buy-now-button")
    variants = [each | {"weight": 500, "weightType": "variable"} for each in strategy.variants]
    return update_strategy(
        "checkout", "buy-now-button", "production", str(strategy.pk), {"variants": variants}, caller=caller
    )


def _find_strategy(flag: str) -> Strategy:
    return Strategy.objects.get(flag__name=flag, environment="production")

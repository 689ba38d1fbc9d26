"""The demo's change requests: the checkout's production requires them, depending on the change; one in each state."""

from collections.abc import Callable
from datetime import datetime, timedelta

from flagadmin.demo.clock import at
from flagadmin.demo.story import make_caller
from groups.access import Caller
from groups.models import User
from projects.flags.environments.actions import disable_flag
from projects.models import Strategy
from projects.projects.environments import set_policy
from projects.strategies.actions import update_strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests.details import comment, set_title
from releases.requests.propose import add_changes, send_changes
from releases.requests.states import set_state
from releases.schedules.actions import schedule_request

SHOP, PRODUCTION = "checkout", "production"
RULES = [
    {"condition": "onlyTurnsOff", "requiredApprovals": 0},
    {"condition": "changesUsers", "percent": 5, "requiredApprovals": 2},
]
"""No approval for turning off, two beyond 5 % of users, one for everything else."""
State = ChangeRequest.State
Who = Callable[[str], Caller]


def tell(now: datetime) -> None:
    users = User.objects.in_bulk(field_name="username")

    def who(name: str) -> Caller:
        return make_caller(users[name])

    with at(now - timedelta(days=3)):
        set_policy(SHOP, PRODUCTION, 1, rules=RULES, caller=who("aisha"))
    _make_applied(now, who)
    _make_rejected(now, who)
    _make_in_review(now, who)
    _make_in_conflict(now, who)
    with at(now - timedelta(minutes=20)):
        send_changes(SHOP, PRODUCTION, [_turn("gift-cards", False)], caller=who("maria"))
    _make_draft(now, users["demo"])
    _make_scheduled(now, who("aisha"))


def _find_strategy(flag: str) -> Strategy:
    return Strategy.objects.filter(flag__name=flag, environment=PRODUCTION).order_by("sort_order")[0]


def _roll_out(flag: str, percent: int | str) -> ProposedChange:
    strategy = _find_strategy(flag)
    parameters = strategy.parameters | {"rollout": f"{percent}"}
    return ProposedChange(flag, "updateStrategy", {"id": f"{strategy.pk}", "parameters": parameters})


def _save(flag: str, percent: int | str, caller: Caller) -> None:
    """Saves without a change request."""
    values = _roll_out(flag, percent).payload
    members, skipping = {"parameters": values["parameters"]}, caller.asking(skips_requests=True)
    update_strategy(SHOP, flag, PRODUCTION, values["id"], members, caller=skipping)


def _turn(flag: str, enabled: bool) -> ProposedChange:
    return ProposedChange(flag, "updateEnabled", {"enabled": enabled})


def _send(title: str, changes: list[ProposedChange], caller: Caller) -> int:
    return send_changes(SHOP, PRODUCTION, changes, title=title, caller=caller).pk


def _make_applied(now: datetime, who: Who) -> None:
    with at(now - timedelta(days=2, hours=6)):
        disable_flag(SHOP, "apple-pay", PRODUCTION, caller=who("lukas").asking(skips_requests=True))
    with at(now - timedelta(days=2, hours=5)):
        request = _send("Apple Pay is back", [_turn("apple-pay", True)], who("lukas"))
    steps = ((4, "aisha", State.APPROVED), (3, "maria", State.APPROVED), (2, "maria", State.APPLIED))
    for hours, name, state in steps:
        with at(now - timedelta(days=2, hours=hours)):
            set_state(SHOP, request, state, caller=who(name))


def _make_rejected(now: datetime, who: Who) -> None:
    with at(now - timedelta(days=1, hours=6)):
        request = _send("One-click pay for everybody", [_roll_out("one-click-pay", 100)], who("lukas"))
    with at(now - timedelta(days=1, hours=5)):
        text = "Not before the fraud checks are done."
        set_state(SHOP, request, State.REJECTED, text=text, caller=who("aisha"))


def _make_in_review(now: datetime, who: Who) -> None:
    with at(now - timedelta(hours=3)):
        changes = [_roll_out("checkout-redesign", 50)]
        request = _send("Open the new checkout to half of our users", changes, who("lukas"))
    with at(now - timedelta(hours=2)):
        comment(SHOP, request, "Does the night batch know?", caller=who("maria"))
    with at(now - timedelta(hours=1)):
        text = "Errors stayed flat at 10 %. Go, but not before the night batch is done."
        set_state(SHOP, request, State.APPROVED, text=text, caller=who("aisha"))


def _make_in_conflict(now: datetime, who: Who) -> None:
    everybody = _find_strategy("one-click-pay").parameters["rollout"]
    with at(now - timedelta(hours=6)):
        _save("one-click-pay", 70, who("lukas"))
    with at(now - timedelta(hours=5)):
        _send("Less of one-click pay", [_roll_out("one-click-pay", 60)], who("maria"))
    with at(now - timedelta(hours=4)):
        _save("one-click-pay", everybody, who("lukas"))


def _make_draft(now: datetime, admin: User) -> None:
    with at(now - timedelta(minutes=40)):
        caller = Caller(user=admin)
        changes = [_roll_out("search-v2", 80), _roll_out("dark-theme", 75)]
        request = add_changes("storefront", PRODUCTION, changes, caller=caller)
        set_title("storefront", request.pk, "More of the new storefront", caller=caller)


def _make_scheduled(now: datetime, caller: Caller) -> None:
    """Schedules a request for Monday morning, without any policy."""
    monday = (now + timedelta(days=7 - now.weekday())).replace(hour=8, minute=30, second=0, microsecond=0)
    with at(now - timedelta(hours=7)):
        changes = [_turn("maintenance-banner", True)]
        request = send_changes("default", PRODUCTION, changes, caller=caller)
        schedule_request("default", request.pk, monday, caller=caller)

"""What somebody tries who knows how change requests work, and may write but neither approve, apply nor skip.

Each takes a client of the API and a browser. In production of shop, cart is on for 10 %, and off-flag is off.
"""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from groups.access import Caller
from groups.permissions import BuiltIn
from projects.models import Segment, Strategy
from releases.models import ChangeRequest, Schedule
from releases.requests.states import set_state
from releases.schedules.due import apply_due
from tests.support.cast import make_user

API = "/api/admin/projects/shop"
FLAG = f"{API}/features/cart"
PLACE = f"{FLAG}/environments/production"
REQUESTS = f"{API}/change-requests"
DRAFT = f"{API}/environments/production/change-requests"
PAGE = "/projects/shop/features/cart"


def off() -> dict[str, Any]:
    return {"feature": "cart", "action": "updateEnabled", "payload": {"enabled": False}}


def propose(who: Any) -> int:
    number: int = who.post(DRAFT, off()).json()["id"]
    return number


def state(who: Any, number: int, name: str, **more: Any) -> Any:
    return who.put(f"{REQUESTS}/{number}/state", {"state": name, **more})


def strategy() -> str:
    return str(
        Strategy.objects.filter(flag__name="cart", environment="production").order_by("sort_order")[0].pk
    )


def segment() -> int:
    return Segment.objects.get(name="beta").pk


def in_an_hour() -> str:
    return f"{timezone.now() + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}Z"


def let_all_be_due() -> int:
    """The number of what was applied."""
    Schedule.objects.update(at=timezone.now() - timedelta(minutes=1))
    apply_due()
    return Schedule.objects.filter(status="done").count()


def import_of(name: str) -> dict[str, Any]:
    return {
        "project": "shop",
        "environment": "production",
        "data": {
            "features": [{"name": name, "type": "release"}],
            "featureStrategies": [
                {"name": "default", "featureName": name, "parameters": {}, "constraints": []}
            ],
            "featureEnvironments": [
                {"featureName": name, "name": name, "environment": "development", "enabled": True}
            ],
            "tagTypes": [],
        },
    }


def approved(who: Any) -> int:
    title = {"feature": "cart", "action": "updateStrategy", "payload": {"id": strategy(), "title": "New"}}
    number: int = who.post(DRAFT, title).json()["id"]
    state(who, number, "In review")
    set_state("shop", number, "Approved", caller=Caller(user=make_user("boss", root_role=BuiltIn.ADMIN)))
    assert ChangeRequest.objects.get(pk=number).state == "Approved"
    return number


def add_to_approved(who: Any) -> Any:
    number = approved(who)
    who.post(DRAFT, off())
    return state(who, number, "Applied")


def edit_approved(who: Any) -> Any:
    number = approved(who)
    [change] = ChangeRequest.objects.get(pk=number).changes.all()
    who.put(f"{REQUESTS}/{number}/changes/{change.pk}", off())
    return state(who, number, "Applied")


def save_later(browser: Any, **more: str) -> None:
    browser.post(f"{PAGE}/switch", SWITCH_OFF | {"when": "at", "at": in_an_hour()} | more)
    let_all_be_due()


def replaced(member: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": f"/{member}", "value": value}]


SWITCH_OFF = {"environment": "production", "enabled": "off", "confirmed": "yes"}
SKIP = {"skip_change_request": "yes", "comment": "!"}
ALL_VARIANTS = [{"name": "x", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
SEGMENT_FORM = {"name": "beta", "do": "save", "confirmed": "yes"}
CONDITION = {"c": ["0"], "c-0-field": "userId", "c-0-operator": "IN", "c-0-values": "1"}
WHOLE = {"op": "replace", "path": "", "value": []}
ONLY_ME = [{"contextName": "userId", "operator": "IN", "values": ["1"]}]
TRICKS: dict[str, Any] = {
    "apply a draft": lambda c, b: state(c, propose(c), "Applied"),
    "approve a draft": lambda c, b: state(c, propose(c), "Approved"),
    "approve one's own": lambda c, b: [
        state(c, number := propose(c), "In review"),
        state(c, number, "Approved"),
    ],
    "apply one in review": lambda c, b: [
        state(c, number := propose(c), "In review"),
        state(c, number, "Applied"),
    ],
    "schedule one in review": lambda c, b: [
        state(c, number := propose(c), "In review"),
        state(c, number, "Scheduled", scheduledAt=in_an_hour()),
    ],
    "say that it is applied": lambda c, b: c.put(f"{REQUESTS}/{propose(c)}/state", {"state": "applied"}),
    "approve by the page": lambda c, b: b.post(
        f"/projects/shop/change-requests/{propose(c)}/state", {"state": "Approved"}
    ),
    "apply by the page": lambda c, b: b.post(
        f"/projects/shop/change-requests/{propose(c)}/state", {"state": "Applied", "comment": "Now"}
    ),
    "add to what is approved": lambda c, b: add_to_approved(c),
    "edit what is approved": lambda c, b: edit_approved(c),
    "skip in a form": lambda c, b: b.post(f"{PAGE}/switch", SWITCH_OFF | SKIP),
    "save later": lambda c, b: save_later(b),
    "save later and skip": lambda c, b: save_later(b, **SKIP),
    "ignore expectations": lambda c, b: c.post(f"{PLACE}/off?ignoreExpectations=true"),
    "a header": lambda c, b: c.post(f"{PLACE}/off", HTTP_X_COMMENT="skip", HTTP_X_SKIP_CHANGE_REQUEST="true"),
    "turn requests off": lambda c, b: c.put(f"{DRAFT}/config", {"changeRequestsEnabled": False}),
    "turn requests off by the page": lambda c, b: b.post(
        "/projects/shop/environments", {"environment": "production", "do": "approvals", "approvals": ""}
    ),
    "take the environment away and back": lambda c, b: [
        c.delete(f"{API}/environments/production"),
        c.post(f"{API}/environments", {"environment": "production"}),
    ],
    "replace all variants by a patch": lambda c, b: c.patch(f"{PLACE}/variants", [WHOLE]),
    "patch a strategy": lambda c, b: c.patch(
        f"{PLACE}/strategies/{strategy()}", replaced("parameters/rollout", "100")
    ),
    "disable a strategy": lambda c, b: c.patch(
        f"{PLACE}/strategies/{strategy()}", replaced("disabled", True)
    ),
    "empty a strategy": lambda c, b: c.put(f"{PLACE}/strategies/{strategy()}", {"name": "default"}),
    "take the segment off a strategy": lambda c, b: c.post(
        "/api/admin/segments/strategies",
        {"projectId": "shop", "environmentId": "production"}
        | {"strategyId": strategy(), "segmentIds": [segment()]},
    ),
    "change the segment": lambda c, b: c.put(
        f"/api/admin/segments/{segment()}", {"name": "beta", "constraints": ONLY_ME}
    ),
    "change the segment by its page": lambda c, b: b.post(
        f"/segments/{segment()}/", SEGMENT_FORM | CONDITION
    ),
    "fill the list of the segment": lambda c, b: c.put(
        f"/api/admin/segments/{segment()}/list", {"values": ["me"]}
    ),
    "fill it by its page": lambda c, b: b.post(
        f"/segments/{segment()}/list", {"text": "me", "mode": "replace", "confirmed": "yes"}
    ),
    "bulk": lambda c, b: c.post(f"{API}/bulk_features/environments/production/off", {"features": ["cart"]}),
    "bulk by the page": lambda c, b: b.post(
        "/flags/switch", {"environment": "production", "enabled": "off", "name": ["cart"], "confirmed": "yes"}
    ),
    "archive": lambda c, b: c.delete(FLAG),
    "archive in bulk": lambda c, b: c.post(f"{API}/archive", {"features": ["cart"]}),
    "archive by the page": lambda c, b: b.post(f"{PAGE}/archive", {"name": "cart", "known": "yes"}),
    "move away": lambda c, b: c.post(f"{FLAG}/changeProject", {"newProjectId": "default"}),
    "a parent that is off": lambda c, b: c.post(f"{FLAG}/dependencies", {"feature": "off-flag"}),
    "a parent by the page": lambda c, b: b.post(
        f"{PAGE}/parents", {"do": "add", "feature": "off-flag", "confirmed": "yes"}
    ),
    "import": lambda c, b: c.post("/api/admin/features-batch/import", import_of("cart")),
    "import a flag that is on": lambda c, b: c.post(
        "/api/admin/features-batch/import", import_of("brand-new")
    ),
    "promote": lambda c, b: c.post(
        f"{API}/environments/promote", {"from": "development", "to": "production", "features": ["cart"]}
    ),
    "order by the page": lambda c, b: b.post(
        f"{PAGE}/order", {"environment": "production", "order": "1,0", "move": "0", "confirmed": "yes"}
    ),
    "add a strategy": lambda c, b: c.post(f"{PLACE}/strategies", {"name": "default"}),
    "remove a strategy": lambda c, b: c.delete(f"{PLACE}/strategies/{strategy()}"),
    "turn off": lambda c, b: c.post(f"{PLACE}/off"),
    "turn another one on": lambda c, b: c.post(f"{API}/features/off-flag/environments/production/on"),
    "variants in several environments": lambda c, b: c.put(
        f"{FLAG}/variants-batch", {"variants": ALL_VARIANTS, "environments": ["production"]}
    ),
    "data fixes": lambda c, b: b.post("/data-fixes/projects/flag/", {"action": "archive"}),
    "delete the project": lambda c, b: c.delete(API),
    "archive the project": lambda c, b: c.post("/api/admin/projects/archive/shop"),
    "revert": lambda c, b: c.post(f"{FLAG}/revert", {"at": "2020-01-01T00:00:00Z"}),
    "keep and apply": lambda c, b: [
        b.post(f"/projects/shop/change-requests/{(number := propose(c))}/keep", {"change": "1"}),
        state(c, number, "Applied"),
    ],
    "revert an applied request": lambda c, b: c.post(f"{REQUESTS}/{propose(c)}/revert"),
    "ask a colleague who may not either": lambda c, b: c.put(
        f"{REQUESTS}/{propose(c)}/approvers", {"reviewers": [1]}
    ),
}

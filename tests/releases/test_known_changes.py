"""Changes that pages and API calls know are refused before anything is written, just as making them would be."""

import contextlib
from functools import partial
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError
from groups.access import Caller
from projects.models import Flag, ProjectEnvironment, Segment, Strategy, StrategySegment
from releases.changes import KINDS
from releases.gate import GateWatch
from releases.gate_refusal import Gated, NeedsChangeRequest
from releases.targets import StoredFlags, Target
from tests.support.examples import examples
from tests.support.for_each import for_each
from tests.support.playground import live_flag
from tests.support.random_changes import RandomChanges

WHO = Caller.system()
WRITES = ("INSERT", "UPDATE", "DELETE", "COPY")
CART = "/api/admin/projects/shop/features/cart/environments/production"
OFF = {"environment": "production", "enabled": "off", "confirmed": "yes"}


def guard(**values: Any) -> None:
    links = ProjectEnvironment.objects.filter(environment="production")
    links.update(**{"required_approvals": 1, **values})


def find_refusal(act: Any) -> Gated | None:
    """What the gate refuses. Nothing stays."""
    with transaction.atomic():
        try:
            with transaction.atomic():
                act()
        except NeedsChangeRequest as refusal:
            return refusal.gated
        except AppError:
            pass
        finally:
            transaction.set_rollback(True)
    return None


def choose_change(random: RandomChanges) -> tuple[str, str, Any]:
    """A flag, an action and its payload."""
    Flag.objects.update(archived_at=None)
    flag, choice = random.active().name, random.random
    stored = [str(key) for key in Strategy.objects.filter(flag__name=flag).values_list("pk", flat=True)]
    key = choice.choice([*stored, "01975cd0-0000-7000-8000-000000000000"])
    turn = {"enabled": choice.random() < 0.6, "shouldActivateDisabledStrategies": choice.random() < 0.5}
    return flag, *choice.choice(
        [
            *[("updateEnabled", turn)] * 5,
            ("addStrategy", random.strategy()),
            ("updateStrategy", random.strategy() | {"id": key}),
            ("deleteStrategy", {"id": key}),
            ("reorderStrategy", [{"id": each, "sortOrder": choice.randrange(4)} for each in stored]),
            ("patchVariant", {"variants": random.variants()}),
            ("updateImpressionData", {"impressionData": choice.random() < 0.5}),
            ("addDependency", {"feature": random.active().name, "enabled": choice.random() < 0.5}),
            ("deleteDependency", None),
            ("archiveFeature", None),
            ("updateSegment", {"id": Segment.objects.get().pk, "constraints": random.constraints()}),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_known_change_is_refused_as_making_it_would_be(
    shop: Any, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    settings.FLAG_ENVIRONMENT_STRATEGIES_LIMIT = 3
    Segment.objects.create(name="everybody", constraints=[])
    for name in ("flag-a", "flag-b"):
        live_flag(name, strategies=[{"name": "default"}])
    random, refused = RandomChanges(seed), 0
    for _ in range(examples(60)):
        guard(required_approvals=None)
        for _ in range(3):
            with contextlib.suppress(AppError), transaction.atomic():
                make(*choose_change(random))
        guard()
        flag, action, payload = choose_change(random)
        attempted = find_refusal(partial(transactional(make), flag, action, payload))
        with monkeypatch.context() as patch:
            patch.setattr(GateWatch, "__call__", lambda watch: None)
            assert find_refusal(partial(make, flag, action, payload)) == attempted, (action, payload)
        refused += attempted is not None
    assert refused > examples(60) / 10


def make(flag: str, action: str, payload: Any) -> None:
    flag = "" if KINDS[action].of_segment else flag
    target = Target("shop", "production", flag, StoredFlags("shop", "production", [flag]))
    KINDS[action].apply(target, payload, WHO)


@pytest.fixture
def cart(shop: Any) -> Flag:
    guard()
    live_flag("fox")
    vip = Segment.objects.create(name="vip", project_id="shop", constraints=[])
    flag = live_flag("cart", strategies=[{"name": "default"}, {"name": "userWithId"}])
    StrategySegment.objects.create(strategy=flag.strategies.all()[0], segment=vip)
    return flag


def list_calls() -> dict[str, tuple[str, Any]]:
    strategies = Strategy.objects.filter(flag__name="cart").order_by("sort_order")
    first, second = (str(key) for key in strategies.values_list("pk", flat=True))
    features, vip = "/api/admin/projects/shop/features", Segment.objects.get()
    member = {"contextName": "userId", "operator": "IN", "values": ["7"]}
    places = [{"id": second, "sortOrder": 0}, {"id": first, "sortOrder": 1}]
    return {
        "switch": (f"{CART}/off", None),
        "add": (f"{CART}/strategies", {"name": "default"}),
        "order": (f"{CART}/strategies/set-sort-order", places),
        "update": (f"{CART}/strategies/{first}", {"name": "default", "disabled": True}),
        "delete": (f"{CART}/strategies/{first}", None),
        "patch": (
            f"{CART}/strategies/{first}",
            [{"op": "replace", "path": "/disabled", "value": True}],
        ),
        "variants": (f"{CART}/variants", [{"name": "blue", "weight": 1000, "weightType": "variable"}]),
        "bulk": (
            "/api/admin/projects/shop/bulk_features/environments/production/off",
            {"features": ["cart"]},
        ),
        "archive": (f"{features}/cart", None),
        "details": (f"{features}/cart", {"type": "release", "impressionData": True}),
        "parent": (f"{features}/cart/dependencies", {"feature": "fox"}),
        "segment": (f"/api/admin/segments/{vip.pk}", {"name": "vip", "constraints": [member]}),
        "switch page": ("/projects/shop/features/cart/switch", OFF),
        "bulk page": ("/flags/switch", {**OFF, "name": "cart"}),
    }


METHODS = {
    "update": "put", "delete": "delete", "patch": "patch", "variants": "put", "archive": "delete", "details": "put",
    "segment": "put",
}  # fmt: skip
CALLS = (
    "switch", "add", "order", "update", "delete", "patch", "variants", "bulk", "archive", "details", "parent",
    "segment", "switch page", "bulk page",
)  # fmt: skip


@for_each("name", CALLS)
def test_nothing_is_written_to_find_out(browse: Any, cart: Flag, name: str) -> None:
    owner, (url, body) = browse("owner"), list_calls()[name]
    options = {} if "page" in name else {"content_type": "application/json"}
    with CaptureQueriesContext(connection) as queries:
        refused = getattr(owner, METHODS.get(name, "post"))(url, body, **options)
    assert refused.status_code == 403
    assert "need a change request" in refused.content.decode()
    assert [query["sql"] for query in queries if query["sql"].startswith(WRITES)] == []


@pytest.mark.parametrize(
    ("approvals", "status", "words"), [(1, 403, "need a change request"), (None, 400, "Save later")]
)
def test_nothing_is_written_to_ask_for_a_later_time(
    browse: Any, cart: Flag, approvals: int | None, status: int, words: str
) -> None:
    guard(required_approvals=approvals)
    owner = browse("owner")
    with CaptureQueriesContext(connection) as queries:
        asked = owner.post("/projects/shop/features/cart/switch", {**OFF, "when": "at"})
    assert (asked.status_code, words in asked.text) == (status, True)
    assert [query["sql"] for query in queries if query["sql"].startswith(WRITES)] == []


def test_a_missing_comment_is_asked_for_first(browse: Any, cart: Flag) -> None:
    guard(comment_required=True)
    refused = browse("owner").post("/projects/shop/features/cart/switch", OFF)
    assert refused.status_code == 400
    assert "requires a comment" in refused.content.decode()


def test_a_missing_permission_is_said_first(browse: Any, cart: Flag) -> None:
    refused = browse("viewer").post(f"{CART}/off")
    assert refused.status_code == 403
    assert "change request" not in refused.content.decode()


def test_an_outdated_edit_is_said_first(browse: Any, cart: Flag) -> None:
    url, body = list_calls()["update"]
    options = {"content_type": "application/json", "headers": {"If-Match": '"outdated"'}}
    owner = browse("owner")
    assert owner.put(url, body, **options).status_code == 412
    assert owner.delete(url, **options).status_code == 412
    current = owner.get(url).headers["ETag"]
    refused = owner.put(url, body, **options | {"headers": {"If-Match": current}})
    assert (refused.status_code, "need a change request" in refused.text) == (403, True)

"""Which events an integration gets: by tags, production only, and only if users change."""

import json

import pytest

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from integrations.models import Delivery
from projects.flags.actions import NewFlag, create_flag, update_flag
from projects.flags.archive.actions import archive_flags, delete_flags
from projects.flags.copies.move import move_flag
from projects.flags.environments.actions import enable_flag
from projects.models import Environment, FlagTag, TagType
from projects.strategies.actions import add_strategy
from tests.support.cast import make_project
from tests.support.receiver import Got, deliver, make_integration, receiver

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db(transaction=True)
ON, STRATEGY, DETAILS = "feature-environment-enabled", "feature-strategy-add", "feature-metadata-updated"
MOVE = "feature-project-change"


@pytest.fixture
def cart(shop, callers):
    return create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))


def kinds(receiver, path="/hook"):
    return [request.json()["type"] for request in receiver.at(path)]


def test_tags(receiver, cart, callers):
    for name, tags in (("team", ["team:checkout", "other:x"]), ("other", ["other:x"]), ("all", [])):
        make_integration(f"{receiver.url}/{name}", tags=tags, events=[DETAILS, "segment-created"])
    TagType.objects.create(name="team")
    FlagTag.objects.create(flag=cart, tag_type_id="team", value="checkout")
    update_flag("shop", "cart", {"description": "New"}, caller=callers("admin"))
    deliver()
    assert [len(receiver.at(path)) for path in ("/team", "/other", "/all")] == [1, 0, 1]


def test_a_deleted_flag_had_its_tags(receiver, cart, callers):
    kept = {"events": ["feature-archived", "feature-deleted"]}
    for name, tags in (("team", ["team:checkout"]), ("other", ["other:x"])):
        make_integration(f"{receiver.url}/{name}", tags=tags, **kept)
    make_integration(
        "", provider="datadog", secrets={"apiKey": "k"}, parameters={"url": f"{receiver.url}/dd"}, **kept
    )
    TagType.objects.create(name="team")
    FlagTag.objects.create(flag=cart, tag_type_id="team", value="checkout")
    archive_flags("shop", ["cart"], caller=callers("admin"))
    deliver()
    delete_flags("shop", ["cart"], caller=callers("admin"))
    deliver()
    assert kinds(receiver, "/team") == ["feature-archived", "feature-deleted"]
    assert [request.json()["tags"] for request in receiver.at("/team")] == [
        [{"type": "team", "value": "checkout"}]
    ] * 2
    assert [request.json()["tags"] for request in receiver.at("/dd")] == [["team:checkout"]] * 2
    assert not receiver.at("/other")


def test_a_move_names_only_projects_of_the_integration(receiver, cart, callers):
    make_project("docs")
    limits = {"shop": ["shop"], "both": ["docs", "shop"], "all": [], "star": ["*"]}
    for name, projects in limits.items():
        make_integration(f"{receiver.url}/{name}", projects=projects, events=[MOVE])
    make_integration(
        f"{receiver.url}/datadog",
        provider="datadog",
        projects=["shop"],
        events=[MOVE],
        secrets={"apiKey": "k"},
    )
    caller = callers("admin")
    move_flag("shop", "cart", "docs", caller=caller)
    move_flag("docs", "cart", "shop", caller=caller)
    deliver()
    told = {
        name: [(sent.json()["preData"], sent.json()["data"]) for sent in receiver.at(f"/{name}")]
        for name in limits
    }
    back = ({"project": "docs"}, {"project": "shop"})
    both = [back[::-1], back]
    assert told == {"shop": [({}, {})], "both": both, "all": both, "star": both}
    [sent] = receiver.at("/datadog")
    assert b"docs" not in sent.body


def test_production_only(receiver, cart, callers):
    make_integration(f"{receiver.url}/hook", production_only=True, events=[ON, DETAILS])
    Environment.objects.filter(name="development").update(type="development")
    for environment in ("development", "production"):
        enable_flag("shop", "cart", environment, caller=callers("admin"))
    update_flag("shop", "cart", {"description": "New"}, caller=callers("admin"))
    deliver()
    assert [request.json()["environment"] for request in receiver.at("/hook")] == ["production", None]


def test_only_if_users_change_with_their_number(receiver, cart, callers):
    integration = make_integration(
        f"{receiver.url}/hook", only_if_users_change=True, events=[ON, STRATEGY, DETAILS, "segment-created"]
    )
    slack = make_integration(
        f"{receiver.url}/slack", provider="slack", only_if_users_change=True, events=[ON]
    )
    caller = callers("admin")
    rollout = {
        "name": "flexibleRollout",
        "parameters": {"rollout": "40", "stickiness": "default", "groupId": "cart"},
    }
    add_strategy("shop", "cart", "production", rollout, caller=caller)
    update_flag("shop", "cart", {"description": "New"}, caller=caller)
    enable_flag("shop", "cart", "production", caller=caller)
    deliver()
    [request] = receiver.at("/hook")
    [place] = request.json()["whoChanges"]
    assert (place["environment"], place["users"]) == ("production", 10_000)
    assert 3_500 < place["changed"] < 4_500
    assert place["changes"] == {"offToOn": place["changed"]}
    says = f"In production, {place['changed']:,} of 10,000 generated users go off → on."
    assert says in receiver.at("/slack")[0].json()["text"]
    states = list(integration.deliveries.order_by("id").values_list("state", flat=True))
    assert states == [Delivery.State.LEFT_OUT, Delivery.State.LEFT_OUT, Delivery.State.SUCCESS]
    assert slack.deliveries.get().state == Delivery.State.SUCCESS


def test_other_environments_do_not_count(receiver, cart, callers):
    integration = make_integration(
        f"{receiver.url}/hook",
        only_if_users_change=True,
        environments=["development"],
        events=["feature-archived"],
    )
    enable_flag("shop", "cart", "production", caller=callers("admin"))
    archive_flags("shop", ["cart"], caller=callers("admin"))
    deliver()
    assert not receiver.got
    assert integration.deliveries.get().state == Delivery.State.LEFT_OUT


def test_what_is_not_known_is_sent(receiver, shop, callers):
    make_integration(
        f"{receiver.url}/hook", only_if_users_change=True, events=["feature-created", "segment-created"]
    )

    @transactional
    def happen():
        record(Event(type=EventType.FEATURE_CREATED, project="shop", feature="gone"), actor=callers("admin"))
        record(Event(type=EventType.SEGMENT_CREATED, subject="s"), actor=callers("admin"))

    happen()
    deliver()
    assert kinds(receiver) == ["feature-created", "segment-created"]


def test_the_api_has_the_filters(api):
    body = {
        "provider": "webhook",
        "parameters": {"url": "https://a.example/"},
        "tags": ["team:checkout"],
        "productionOnly": True,
        "onlyIfUsersChange": True,
    }
    created = api["editor"].post("/api/admin/addons", body).json()
    assert {key: created[key] for key in ("tags", "productionOnly", "onlyIfUsersChange")} == {
        key: body[key] for key in ("tags", "productionOnly", "onlyIfUsersChange")
    }
    refused = api["editor"].post("/api/admin/addons", body | {"tags": ["checkout"]})
    assert "is no tag" in json.dumps(refused.json())


def test_what_generated_users_do_not_tell_is_sent(receiver, cart, callers):
    """Nobody of the generated users has such an id, but all real ones may."""
    make_integration(f"{receiver.url}/hook", only_if_users_change=True, events=[ON])
    pattern = {"contextName": "userId", "operator": "REGEX", "value": "^[a-f0-9]{32}$"}
    add_strategy(
        "shop", "cart", "production", {"name": "default", "constraints": [pattern]}, caller=callers("admin")
    )
    enable_flag("shop", "cart", "production", caller=callers("admin"))
    deliver()
    [request] = receiver.at("/hook")
    [place] = request.json()["whoChanges"]
    assert place["unmeasured"][0].startswith("cart has the condition userId matching ^[a-f0-9]{32}$")


def test_private_projects_are_named_or_left_out(receiver, callers):
    """All projects are those that are not private, and a flag that comes from a private one came from nowhere."""
    make_project("lab", mode="private")
    for name, projects in (("all", []), ("named", ["lab"])):
        make_integration(f"{receiver.url}/{name}", projects=projects, events=["feature-created", MOVE])
    for project in ("default", "lab"):
        create_flag(project, NewFlag(name=f"of-{project}"), caller=callers("admin"))
    move_flag("lab", "of-lab", "default", caller=callers("admin"))
    deliver()
    told = {
        path: [(each["type"], each["project"]) for each in map(Got.json, receiver.at(path))]
        for path in ("/all", "/named")
    }
    assert told == {
        "/all": [("feature-created", "default"), (MOVE, "default")],
        "/named": [("feature-created", "lab")],
    }
    assert b"lab" not in receiver.at("/all")[1].body.replace(b"of-lab", b"")

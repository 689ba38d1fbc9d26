"""Changes to flags on the admin site are audited, validated as in the API, and affect evaluations at once."""

import json

import pytest

from projects.models import Dependency, Flag, FlagEnvironment, FlagLink, FlagTag, Segment, Strategy
from projects.revision import read_revisions
from tests.support.admin_forms import errors_of, refusals, saved, send, site
from tests.support.cast import make_group
from tests.support.flags import add_strategy, make_flag
from tests.support.records import events

__all__ = ["site"]

FLAGS = "/admin/projects/flag/"


@pytest.fixture
def cart(shop):
    return make_flag("cart")


def page(flag, name="change"):
    return f"{FLAGS}{flag.pk}/{name}/"


def test_a_flag_is_created_in_all_environments(site, shop):
    saved(send(site, f"{FLAGS}add/", name="menu", project="shop", type="release"))
    menu = Flag.objects.get(name="menu")
    assert menu.environments.count() == 2
    assert events("feature-created")[0].actor_name == "admin"
    assert "already exists" in errors_of(send(site, f"{FLAGS}add/", name="menu", project="shop"))[0]
    response = send(site, f"{FLAGS}add/", name="a b", project="shop")
    assert "Spaces are not allowed" in refusals(response)[0]


def test_a_change_is_seen_by_the_next_evaluation(site, cart):
    before = read_revisions(["default", "shop"])
    saved(send(site, page(cart), description="baskets", stale="on"))
    cart.refresh_from_db()
    assert (cart.description, cart.stale) == ("baskets", True)
    after = read_revisions(["default", "shop"])
    assert after["shop"] > before["shop"]
    assert after["default"] == before["default"]
    assert [event.type for event in events("feature-metadata-updated", "feature-stale-on")] != []


def test_a_page_sent_unchanged_changes_nothing(site, cart):
    add_strategy(
        cart, name="flexibleRollout", parameters={"rollout": "50", "stickiness": "default", "groupId": "cart"}
    )
    before = read_revisions(["shop"])
    saved(send(site, page(cart)))
    assert read_revisions(["shop"]) == before
    assert events("feature-metadata-updated", "feature-strategy-update") == []


def test_strategies_are_added_changed_and_removed(site, cart):
    vip = Segment.objects.create(name="vip", constraints=[])
    constraint = {"contextName": "country", "operator": "IN", "values": ["DE"]}
    saved(
        send(
            site,
            page(cart),
            **{
                "strategies-TOTAL_FORMS": "1",
                "strategies-0-environment": "production",
                "strategies-0-name": "flexibleRollout",
                "strategies-0-sort_order": "0",
                "strategies-0-parameters": '{"rollout": 25}',
                "strategies-0-constraints": json.dumps([constraint]),
                "strategies-0-variants": "[]",
                "strategies-0-used_segments": [str(vip.pk)],
            },
        )
    )
    strategy = Strategy.objects.get()
    assert (strategy.parameters["rollout"], strategy.constraints) == ("25", [constraint])
    assert [segment.name for segment in strategy.segments.all()] == ["vip"]
    saved(send(site, page(cart), **{"strategies-0-parameters": '{"rollout": "75"}'}))
    strategy.refresh_from_db()
    assert strategy.parameters["rollout"] == "75"
    assert strategy.segments.count() == 1
    saved(send(site, page(cart), **{"strategies-0-DELETE": "on"}))
    assert not Strategy.objects.exists()
    kinds = ["feature-strategy-add", "feature-strategy-update", "feature-strategy-remove"]
    assert [event.type for event in events(*kinds)] == kinds


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "constraints",
            [{"contextName": "a", "operator": "NOPE", "values": ["x"]}],
            "NOPE is not an operator",
        ),
        ("constraints", {"contextName": "a"}, "constraints"),
        ("constraints", ["text"], "constraints[0]"),
        ("parameters", ["rollout"], "parameters"),
        ("variants", [{"name": "a"}], "variants[0].weight"),
    ],
)
def test_a_refused_strategy_changes_nothing(site, cart, field, value, message):
    strategy = add_strategy(cart, name="flexibleRollout", parameters={"rollout": "50"})
    response = send(site, page(cart), **{f"strategies-0-{field}": json.dumps(value)})
    assert any(message in text for text in errors_of(response)), errors_of(response)
    before = Strategy.objects.get()
    assert (before.constraints, before.parameters) == (strategy.constraints, strategy.parameters)


def test_invalid_json_is_an_error_of_its_field(site, cart):
    add_strategy(cart)
    response = send(site, page(cart), **{"strategies-0-parameters": "{"})
    assert "Enter a valid JSON." in errors_of(response)


def test_an_owner_is_set_and_is_either_a_person_or_a_group(site, people, cart):
    group = make_group("crew")
    saved(send(site, page(cart), owner_user=people["owner"].pk))
    cart.refresh_from_db()
    assert cart.owner_user == people["owner"]
    assert send(site, page(cart), owner_group=group.pk).status_code == 200
    saved(send(site, page(cart), owner_user="", owner_group=group.pk))
    cart.refresh_from_db()
    assert (cart.owner_user, cart.owner_group) == (None, group)
    service = send(site, page(cart), owner_user=people["service"].pk, owner_group="")
    assert "not found" in refusals(service)[0]


def strategy_row(number, rollout):
    fields = {
        "environment": "development", "name": "flexibleRollout", "sort_order": "0", "constraints": "[]",
        "parameters": json.dumps({"rollout": str(rollout)}), "variants": "[]",
    }  # fmt: skip
    return {f"strategies-{number}-{name}": value for name, value in fields.items()}


def state(flag):
    """Whether the flag is on in development, and the rollouts of its strategies there that are enabled."""
    strategies = Strategy.objects.filter(flag=flag, disabled=False)
    return flag.environments.get(environment="development").enabled, [
        s.parameters["rollout"] for s in strategies
    ]


def test_a_flag_that_is_turned_on_with_its_first_strategy_gets_no_other(site, cart):
    row = {"environments-0-enabled": "on", "strategies-TOTAL_FORMS": "1", **strategy_row(0, 10)}
    saved(send(site, page(cart), **row))
    assert state(cart) == (True, ["10"])


@pytest.mark.parametrize("removed", ["DELETE", "disabled"])
def test_a_flag_whose_only_strategy_is_replaced_stays_on(site, cart, removed):
    saved(send(site, page(cart), **{"strategies-TOTAL_FORMS": "1", **strategy_row(0, 50)}))
    saved(send(site, page(cart), **{"environments-0-enabled": "on"}))
    new = {"strategies-TOTAL_FORMS": "2", **strategy_row(1, 10)}
    saved(send(site, page(cart), **{f"strategies-0-{removed}": "on", **new}))
    assert state(cart) == (True, ["10"])
    assert events("feature-environment-disabled") == []


def test_switches_and_variants_are_changed(site, cart):
    variants = [{"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    saved(
        send(
            site,
            page(cart),
            **{"environments-0-enabled": "on", "environments-0-variants": json.dumps(variants)},
        )
    )
    state = FlagEnvironment.objects.get(flag=cart, environment="development")
    assert state.enabled
    assert state.variants[0]["name"] == "blue"
    assert (
        Strategy.objects.get(flag=cart).name == "flexibleRollout"
    )  # without one it would be on for everyone
    response = send(site, page(cart), **{"environments-0-variants": '[{"name": "blue"}]'})
    assert "variants[0].weight" in errors_of(response)[0]


def test_tags_links_and_parents_are_changed(site, cart):
    base = make_flag("base")
    saved(
        send(
            site,
            page(cart),
            **{
                "tags-TOTAL_FORMS": "1",
                "tags-0-tag_type": "simple",
                "tags-0-value": "web",
                "links-TOTAL_FORMS": "1",
                "links-0-url": "https://example.com/1",
                "parents-TOTAL_FORMS": "1",
                "parents-0-parent": str(base.pk),
                "parents-0-enabled": "on",
                "parents-0-variants": "[]",
            },
        )
    )
    assert FlagTag.objects.get(flag=cart).value == "web"
    assert FlagLink.objects.get(flag=cart).url == "https://example.com/1"
    assert Dependency.objects.get(flag=cart).parent == base
    saved(send(site, page(cart), **{"tags-0-value": "app", "parents-0-DELETE": "on", "links-0-DELETE": "on"}))
    assert FlagTag.objects.get(flag=cart).value == "app"
    assert not Dependency.objects.exists()
    assert not FlagLink.objects.exists()
    # What it may not depend on is said.
    response = send(
        site,
        page(cart),
        **{"parents-TOTAL_FORMS": "1", "parents-0-parent": str(cart.pk), "parents-0-variants": "[]"},
    )
    assert refusals(response) or errors_of(response)
    assert not Dependency.objects.exists()


# Deleting -------------------------------------------------------------------------------------------------


def test_an_active_flag_is_not_deleted(site, cart):
    assert "Flag cart is still active" in site.get(page(cart, "delete")).content.decode()
    site.post(page(cart, "delete"), {"post": "yes"})
    site.post(FLAGS, {"action": "delete_selected", "_selected_action": [cart.pk], "post": "yes"})
    assert Flag.objects.filter(pk=cart.pk).exists()


def test_flags_are_archived_revived_and_deleted_in_bulk(site, cart):
    site.post(FLAGS, {"action": "archive", "_selected_action": [cart.pk]})
    cart.refresh_from_db()
    assert cart.is_archived
    # An archived flag is shown, and not changed.
    assert site.post(page(cart), {"description": "x"}).status_code == 403
    site.post(FLAGS, {"action": "revive", "_selected_action": [cart.pk]})
    site.post(FLAGS, {"action": "archive", "_selected_action": [cart.pk]})
    site.post(FLAGS, {"action": "delete_selected", "_selected_action": [cart.pk], "post": "yes"})
    assert not Flag.objects.exists()
    kinds = ["feature-archived", "feature-revived", "feature-archived", "feature-deleted"]
    assert [event.type for event in events(*kinds)] == kinds


def test_a_parent_and_its_child_are_archived_together(site, cart):
    child = make_flag("child")
    Dependency.objects.create(flag=child, parent=cart)
    response = site.post(FLAGS, {"action": "archive", "_selected_action": [cart.pk, child.pk]})
    assert not refusals(response)
    assert not Flag.objects.active().exists()


def test_strategies_have_a_list_of_their_own(site, cart):
    strategy = add_strategy(cart, name="flexibleRollout", parameters={"rollout": "50"})
    url = f"/admin/projects/strategy/{strategy.pk}/change/"
    saved(send(site, url, title="half", parameters='{"rollout": "40"}'))
    strategy.refresh_from_db()
    assert (strategy.title, strategy.parameters["rollout"]) == ("half", "40")
    site.post(f"/admin/projects/strategy/{strategy.pk}/delete/", {"post": "yes"})
    assert not Strategy.objects.exists()
    assert len(events("feature-strategy-update", "feature-strategy-remove")) == 2

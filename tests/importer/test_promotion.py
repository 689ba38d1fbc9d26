"""Promotion: what flags have in one environment is planned into another, applied and undone as an import is."""

import json
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict
from groups.access import Caller
from importer.apply.execute import import_body, promote_flags
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.plan.import_plan import Plan, read_flags
from importer.promotion import ENABLED, PARTS, STRATEGIES, VARIANTS, Promotion, read_promotion
from importer.report import make_promotion_document
from importer.runs import access_run, confirm_run, create_promotion, load_body
from projects.flags.archive.actions import archive_flags
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.models import ContextField, Flag, Project, ProjectEnvironment, Segment
from projects.projects.environments import set_default_strategy
from projects.strategies.actions import add_strategy
from tests.support.examples import examples
from tests.support.flags import make_flag
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db
WHO = Caller.system()
NAMES = ("one", "two", "three")
URL = "/api/admin/projects/shop/environments/promote"

VARIANT = st.fixed_dictionaries(
    {"name": st.sampled_from("abc"), "weight": st.integers(0, 1000), "weightType": st.just("variable")},
    optional={"payload": st.just({"type": "string", "value": "x"})},
)
VARIANT_LISTS = st.lists(
    VARIANT.map(lambda variant: {**variant, "stickiness": "default"}),
    max_size=3,
    unique_by=lambda variant: variant["name"],
)
STRATEGIES_OF_A_FLAG = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(("flexibleRollout", "default"))},
        optional={
            "title": st.sampled_from((None, "Beta")),
            "disabled": st.booleans(),
            "sortOrder": st.integers(0, 5),
            "parameters": st.sampled_from(({"rollout": "10"}, {"rollout": "50", "stickiness": "userId"})),
            "constraints": st.lists(
                st.sampled_from(
                    (
                        {"contextName": "country", "operator": "IN", "values": ["DE"]},
                        {"contextName": "age", "operator": "NUM_GT", "value": "5", "inverted": True},
                    )
                ),
                max_size=2,
            ),
            "segments": st.sampled_from(([], [7])),
            "variants": VARIANT_LISTS,
        },
    ),
    max_size=4,
)
STATE = st.tuples(STRATEGIES_OF_A_FLAG, st.booleans(), VARIANT_LISTS)
WORLDS = st.lists(st.tuples(STATE, STATE), min_size=3, max_size=3)


def make_flags(environment: str, states: Any) -> None:
    """Flags ``one``, ``two`` and ``three`` with these strategies, switches and variants in the environment."""
    flags = list(zip(NAMES, states, strict=True))
    sent = body(
        *NAMES,
        environment=environment,
        featureStrategies=[each | {"featureName": name} for name, (listed, _, _) in flags for each in listed],
        featureEnvironments=[
            switch(name, enabled=enabled, variants=variants) for name, (_, enabled, variants) in flags
        ],
        segments=[{"id": 7, "name": "vip"}],
    )
    import_body(read_body(sent), caller=WHO)


def documents(environment: str) -> dict[str, Any]:
    names = Flag.objects.values_list("name", flat=True)
    stored = read_flags(list(names), project="shop", environment=environment)
    return {name: flag.document for name, flag in stored.items()}


def contents_of(document: Any) -> Any:
    """What is compared: where strategies are in their list counts, the numbers that say it do not."""
    return [{**each, "sortOrder": 0} for each in document["strategies"]]


def planned(promotion: Promotion, caller: Caller = WHO) -> Plan:
    return plan_import(read_promotion(promotion), caller=caller)


@pytest.mark.exhaustive
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    world=WORLDS,
    selected=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=3, unique=True),
)
def test_selected_parts_are_equal_afterwards_and_nothing_else_changes(
    shop: Project, world: Any, selected: list[str], parts: list[str]
) -> None:
    with transaction.atomic():
        Segment.objects.create(name="vip", constraints=[])
        make_flags("development", [state for state, _ in world])
        make_flags("production", [state for _, state in world])
        source, before = documents("development"), documents("production")
        promotion = Promotion("shop", "development", "production", tuple(selected), frozenset(parts))
        plan = planned(promotion)
        assert plan.can_be_applied

        run = promote_flags(promotion, caller=WHO)

        after = documents("production")
        assert documents("development") == source
        assert {name: flag.after for name, flag in plan.flags.items()} == {n: after[n] for n in selected}
        for name in NAMES:
            expected = dict(before[name]) | {key: after[name][key] for key in (STRATEGIES, ENABLED)}
            if name in selected and VARIANTS in parts:
                expected[VARIANTS] = source[name][VARIANTS]
            assert after[name] == expected
            if name not in selected:
                assert after[name] == before[name]
                continue
            if STRATEGIES in parts:
                assert contents_of(after[name]) == contents_of(source[name])
            elif name not in plan.defaulted:
                assert after[name][STRATEGIES] == before[name][STRATEGIES]
            is_open = any(not each["disabled"] for each in after[name][STRATEGIES])
            wanted = source[name][ENABLED] if ENABLED in parts else before[name][ENABLED] and is_open
            assert after[name][ENABLED] == wanted

        again = planned(promotion)
        assert again.counts["same"] == len(selected)
        undo_import(run.id, caller=WHO)
        assert documents("production") == before
        transaction.set_rollback(True)


@pytest.fixture
def cart(shop: Project) -> Promotion:
    """Flag ``cart`` is on for 10 % in development, off and without strategies in production."""
    make_cart("10")
    return Promotion("shop", "development", "production", ("cart",))


def make_cart(rollout: str) -> None:
    sent = body(
        "cart",
        featureStrategies=[strategy("cart", parameters={"rollout": rollout})],
        featureEnvironments=[switch("cart")],
    )
    import_body(read_body(sent), caller=WHO)


def post(client: Any, **members: Any) -> Any:
    sent = {"from": "development", "to": "production", "features": ["cart"], **members}
    headers = sent.pop("headers", {})
    return client.post(URL, sent, headers=headers)


def test_a_flag_that_is_off_stays_off(cart: Promotion) -> None:
    plan = planned(cart)
    assert plan.flags["cart"].reason == "Stays off in production."
    enable_flag("shop", "cart", "production", caller=WHO)
    assert planned(cart).flags["cart"].reason == ""
    disable_flag("shop", "cart", "production", caller=WHO)
    promote_flags(cart, caller=WHO)
    document = documents("production")["cart"]
    assert (document["enabled"], len(document["strategies"])) == (False, 1)


def test_strategies_that_stay_keep_their_ids(cart: Promotion) -> None:
    promote_flags(cart, caller=WHO)
    [kept] = read_flags(["cart"], project="shop", environment="production")["cart"].strategy_ids
    add_strategy("shop", "cart", "development", {"name": "default"}, caller=WHO)
    promote_flags(cart, caller=WHO)
    ids = read_flags(["cart"], project="shop", environment="production")["cart"].strategy_ids
    assert (ids[0], len(ids)) == (kept, 2)


def test_turning_on_adds_the_default_strategy_of_the_target(cart: Promotion) -> None:
    default = {"name": "flexibleRollout", "parameters": {"rollout": "5"}}
    set_default_strategy("shop", "production", default, caller=WHO)
    promote_flags(Promotion(*cart_places(cart), frozenset({ENABLED})), caller=WHO)
    document = documents("production")["cart"]
    assert document["enabled"]
    assert [each["parameters"]["rollout"] for each in document["strategies"]] == ["5"]


def cart_places(cart: Promotion) -> tuple[str, str, str, tuple[str, ...]]:
    return cart.project, cart.source, cart.target, cart.flags


def test_one_that_loses_its_last_strategy_is_turned_off(cart: Promotion) -> None:
    make_flag("bare")
    enable_flag("shop", "bare", "production", caller=WHO)
    promote_flags(Promotion("shop", "development", "production", ("bare",)), caller=WHO)
    document = documents("production")["bare"]
    assert (document["enabled"], document["strategies"]) == (False, [])


def test_what_all_environments_share_does_not_change(cart: Promotion) -> None:
    """A description, tag, link, parent, segment and context field, changed after the preview too."""
    ContextField.objects.create(name="tier")
    segment = Segment.objects.create(name="vip", constraints=[])
    in_segment = {"name": "default", "segments": [segment.pk]}
    add_strategy("shop", "cart", "development", in_segment, caller=WHO)
    run = create_promotion(cart, caller=WHO)
    Flag.objects.filter(name="cart").update(description="Changed since")
    fields = list(ContextField.objects.values())
    with pytest.raises(Conflict):
        confirm_run(run, caller=WHO, fingerprint=run.fingerprint)
    promote_flags(cart, caller=WHO)
    document = documents("production")["cart"]
    assert document["description"] == "Changed since"
    assert document["strategies"][1]["segments"] == [segment.pk]
    assert list(ContextField.objects.values()) == fields
    assert Segment.objects.count() == 1


# Confirmed previews -----------------------------------------------------------------------------------------


def test_a_change_of_the_source_after_the_preview_is_not_promoted_unseen(cart: Promotion) -> None:
    run = create_promotion(cart, caller=WHO)
    make_cart("20")
    with pytest.raises(Conflict, match="cart was changed at"):
        confirm_run(run, caller=WHO, fingerprint=run.fingerprint)
    assert documents("production")["cart"]["strategies"] == []


def test_an_excluded_flag_stays(cart: Promotion) -> None:
    make_flag("other")
    add_strategy("shop", "other", "development", {"name": "default"}, caller=WHO)
    both = Promotion("shop", "development", "production", ("cart", "other"))
    run = create_promotion(both, caller=WHO)
    confirm_run(run, caller=WHO, fingerprint=run.fingerprint, excluded=["other"])
    assert documents("production")["other"]["strategies"] == []
    assert documents("production")["cart"]["strategies"] != []


def test_a_flag_archived_after_the_preview_is_skipped(cart: Promotion) -> None:
    run = create_promotion(cart, caller=WHO)
    archive_flags("shop", ["cart"], caller=WHO)
    assert planned(cart).counts["skip"] == 1
    with pytest.raises(Conflict):
        confirm_run(run, caller=WHO, fingerprint=run.fingerprint)


def test_a_deleted_flag_can_be_excluded(cart: Promotion) -> None:
    run = create_promotion(Promotion(*cart_places(cart)[:3], ("cart", "gone")), caller=WHO)
    assert run.counts["refuse"] == 1
    confirm_run(run, caller=WHO, fingerprint=run.fingerprint, excluded=["gone"])
    assert documents("production")["cart"]["strategies"] != []


def test_undo_is_refused_once_the_flag_has_changed(cart: Promotion) -> None:
    run = promote_flags(cart, caller=WHO)
    enable_flag("shop", "cart", "production", caller=WHO)
    with pytest.raises(Conflict, match="after this promotion, so it cannot be undone"):
        undo_import(run.id, caller=WHO)


# The API ----------------------------------------------------------------------------------------------------


def test_plan_only_says_what_promoting_does(cart: Promotion, api: Any) -> None:
    response = post(api["admin"], planOnly=True)
    plan = response.json()
    assert response.status_code == 200
    assert plan["features"] == [
        {
            "name": "cart",
            "action": "change",
            "reason": "Stays off in production.",
            "changes": [
                {
                    "part": "strategy",
                    "before": None,
                    "after": "On for 10 % of users, by userId (or sessionId)",
                }
            ],
        }
    ]
    assert (plan["errors"], plan["warnings"], plan["permissions"]) == ([], [], [])
    assert documents("production")["cart"]["strategies"] == []

    done = post(api["admin"], headers={"If-Match": response["ETag"]}).json()

    assert done["counts"]["change"] == 1
    assert ImportRun.objects.get(pk=done["id"]).promoted_from == "development"
    assert post(api["admin"], planOnly=True).json()["counts"]["same"] == 1


def test_another_plan_than_the_one_read_is_412(cart: Promotion, api: Any) -> None:
    etag = post(api["admin"], planOnly=True)["ETag"]
    make_cart("20")
    response = post(api["admin"], headers={"If-Match": etag})
    assert response.status_code == 412
    assert documents("production")["cart"]["strategies"] == []
    promotion = Promotion("shop", "development", "production", ("cart",))
    current = json.loads(response.content)["current"]
    assert current == json.loads(json.dumps(make_promotion_document(promotion, planned(promotion))))


def test_is_one_change_with_an_event_for_each_flag(cart: Promotion, api: Any) -> None:
    before = AuditEvent.objects.latest("id").pk
    post(api["admin"])
    events = AuditEvent.objects.filter(pk__gt=before).order_by("id")
    assert list(events.values_list("type", "feature", "subject", "environment")) == [
        ("feature-promoted", "cart", "development", "production"),
        ("features-promoted", None, "development", "production"),
    ]
    assert len(set(events.values_list("request_id", flat=True))) == 1


REFUSED = {
    "not another environment": ({"to": "development"}, "to", "must be another environment than from"),
    "an unknown source": ({"from": "moon"}, "from", "project shop does not use moon"),
    "an unknown target": ({"to": "moon"}, "to", "project shop does not use moon"),
    "an unknown part": ({"copy": ["tags"]}, "copy[0]", "must be enabled, strategies or variants"),
    "no flags": ({"features": []}, "features", ""),
    "an unknown flag": ({"features": ["cart", "gone"]}, "features[1]", "flag gone not found in project shop"),
}


@pytest.mark.parametrize(("members", "path", "message"), REFUSED.values(), ids=REFUSED)
def test_is_refused(cart: Promotion, api: Any, members: Any, path: str, message: str) -> None:
    response = post(api["admin"], **members)
    problem = response.json()["details"][0]
    assert (response.status_code, problem["path"]) == (400, path)
    assert message in problem["message"]
    assert documents("production")["cart"]["strategies"] == []


def test_a_project_without_one_of_the_environments(cart: Promotion, api: Any) -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="development").delete()
    assert post(api["admin"]).json()["details"][0]["path"] == "from"


def test_an_archived_project_is_not_found(cart: Promotion, api: Any) -> None:
    Project.objects.filter(pk="shop").update(archived_at="2026-01-01T00:00:00Z")
    assert post(api["admin"]).status_code == post(api["admin"], planOnly=True).status_code == 404


def test_a_flag_of_another_project_is_not_told(cart: Promotion, api: Any) -> None:
    make_flag("elsewhere", project="default")
    problem = post(api["admin"], features=["elsewhere"]).json()["details"][0]
    assert problem["message"] == "flag elsewhere not found in project shop"


def test_an_environment_called_promote_can_still_be_removed(shop: Project, api: Any) -> None:
    assert (
        api["admin"].post("/api/admin/environments", {"name": "promote", "type": "test"}).status_code == 201
    )
    assert api["admin"].post(URL.removesuffix("/promote"), {"environment": "promote"}).status_code == 200
    assert api["reader"].delete(URL).status_code == 403
    assert api["admin"].delete(URL).status_code == 200
    assert not ProjectEnvironment.objects.filter(environment="promote").exists()


# Permissions ------------------------------------------------------------------------------------------------


def change_strategy(flag: str) -> None:
    """It is on for 10 % in development, for 50 % in production."""
    add_strategy("shop", flag, "production", rollout("50"), caller=WHO)
    add_strategy("shop", flag, "development", rollout("10"), caller=WHO)


def rollout(percentage: str) -> dict[str, Any]:
    return {"name": "flexibleRollout", "parameters": {"rollout": percentage}}


def add_one(flag: str) -> None:
    add_strategy("shop", flag, "development", rollout("10"), caller=WHO)


def remove_one(flag: str) -> None:
    for environment in ("development", "production"):
        add_strategy("shop", flag, environment, rollout("10"), caller=WHO)
    add_strategy("shop", flag, "production", rollout("20"), caller=WHO)


def turn_off(flag: str) -> None:
    for environment in ("development", "production"):
        add_strategy("shop", flag, environment, rollout("10"), caller=WHO)
    enable_flag("shop", flag, "production", caller=WHO)


def remove_last(flag: str) -> None:
    """Which turns the flag off, as removing it by itself does."""
    add_strategy("shop", flag, "production", rollout("10"), caller=WHO)
    enable_flag("shop", flag, "production", caller=WHO)


def change_nothing(flag: str) -> None:
    disable_flag("shop", flag, "production", caller=WHO)


NEEDS = {
    "a changed strategy": (change_strategy, ["UPDATE_FEATURE_STRATEGY"]),
    "another strategy": (add_one, ["CREATE_FEATURE_STRATEGY"]),
    "one strategy less": (remove_one, ["DELETE_FEATURE_STRATEGY"]),
    "no strategy any more": (remove_last, ["DELETE_FEATURE_STRATEGY"]),
    "a switch": (turn_off, ["UPDATE_FEATURE_ENVIRONMENT"]),
    "nothing": (change_nothing, []),
}


@pytest.mark.parametrize(("prepare", "needed"), NEEDS.values(), ids=NEEDS)
def test_needs_what_the_single_changes_need(shop: Project, api: Any, prepare: Any, needed: list[str]) -> None:
    make_flag("cart")
    prepare("cart")
    parts = [STRATEGIES, VARIANTS, *([ENABLED] if prepare is turn_off else [])]
    response = post(api["reader"], copy=parts)
    if needed:
        assert (response.status_code, response.json()["permissions"]) == (403, needed)
    else:
        assert response.status_code == 200
    planned_by_reader = post(api["reader"], copy=parts, planOnly=True).json()["permissions"]
    assert len([item for entry in planned_by_reader for item in entry["affectedItems"]]) == len(needed)
    assert post(api["member"], copy=parts).status_code == 200


def test_undo_needs_what_the_changes_back_need(cart: Promotion, callers: Any) -> None:
    run = promote_flags(cart, caller=callers("member"))
    with pytest.raises(Exception, match='You need the "Delete strategies" permission'):
        undo_import(run.pk, caller=callers("reader"))
    assert access_run(callers("reader"), run.pk).state == ImportRun.State.DONE
    undo_import(run.pk, caller=callers("member"))


def test_a_done_promotion_is_not_promoted_again(cart: Promotion) -> None:
    run = promote_flags(cart, caller=WHO)
    with pytest.raises(Conflict, match="no longer pending"):
        load_body(run)

"""Variants have the order and weights of the reference, which decide the variant that each user gets."""

import json
import random

import pytest

from projects.models import FlagEnvironment, Strategy
from projects.strategies.rules import make_variant_sort_key, make_variants
from tests.support.admin_forms import saved, send, site
from tests.support.cast import client, make_token
from tests.support.flags import make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.import_bodies import body, strategy, switch
from tests.support.vectors import load

__all__ = ["site"]

FLAG = "/api/admin/projects/shop/features/cart"
STRATEGIES = f"{FLAG}/environments/development/strategies"
VARIANTS = f"{FLAG}/environments/development/variants"
SENT = ("Zeta", "Beta", "control", "alpha", "treatment-a", "Treatment-A")
STORED = [
    ("alpha", 167), ("Beta", 167), ("control", 167), ("treatment-a", 166), ("Treatment-A", 166), ("Zeta", 167),
]  # fmt: skip
BY_VERSION_1 = [("B", 334), ("a", 333), ("c", 333)]


def variant(name, weight=1, kind="variable"):
    return {"name": name, "weight": weight, "weightType": kind, "stickiness": "default"}


def listed(variants):
    return [(v["name"], v["weight"]) for v in variants]


def shared_out(*given):
    return listed(make_variants([variant(*arguments) for arguments in given]))


# The rules -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ["_a", "-a", ".a", "~a", "0", "10", "9", "a", "A", "a_b", "a-b", "ab", "B"],
        ["co_op", "co-op", "Co-op", "CO-OP", "co.op", "coop"],
        ["aa", "aA", "Aa", "AA", "ab"],
        ["v1", "V1", "v1.0", "v1.0.1", "v10", "v2"],
        ["e", "E", "é", "É", "ea", "Éa", "f", "z", "ж"],
    ],
)
def test_names_are_in_the_order_of_a_person(names):
    shuffled = random.Random(1).sample(names, len(names))
    assert sorted(shuffled, key=make_variant_sort_key) == names


def test_names_are_in_the_recorded_order():
    names = load("variant_order")["sorted"]
    shuffled = random.Random(1).sample(names, len(names))
    assert sorted(shuffled, key=make_variant_sort_key) == names


def test_weights_are_the_recorded_ones():
    for mix in load("variant_order")["weights"]:
        variants = [(name, weight, kind) for name, kind, weight in mix["sent"]]
        assert shared_out(*variants) == [tuple(pair) for pair in mix["stored"]]


def test_the_first_ones_sent_take_the_remainder():
    assert shared_out(*"fedcba") == list(zip("abcdef", (166, 166, 167, 167, 167, 167), strict=True))
    variants = ("c",), ("b",), ("a",), ("fixed", 200, "fix")
    assert shared_out(*variants) == [("a", 266), ("b", 267), ("c", 267), ("fixed", 200)]


def test_what_a_server_delivered_keeps_its_weights():
    """The remainder is not shared out anew by the sorted names, or an export moved users at every import."""
    delivered = [("a", 266), ("b", 267), ("c", 267), ("fixed", 200, "fix")]
    assert shared_out(*delivered) == [("a", 266), ("b", 267), ("c", 267), ("fixed", 200)]


@pytest.mark.parametrize(
    "given",
    [
        [("a", 300), ("b", 700)],  # no even shares
        [("b", 333), ("a", 334), ("c", 333)],  # not sorted
        [("a", 333), ("b", 333), ("c", 333)],  # not 1000
    ],
)
def test_everything_else_is_shared_out(given):
    first, *_ = sorted(shared_out(*given), key=lambda pair: -pair[1])
    assert first[0] == given[0][0]


# The ways in, and out --------------------------------------------------------------------------------------


def rows(names):
    return {"v": [str(n) for n in range(len(names))]} | {f"v-{n}-name": name for n, name in enumerate(names)}


def put_variants(api, browse, variants):
    assert api["member"].put(VARIANTS, variants, format="json").status_code == 200


def patch_variants(api, browse, variants):
    operations = [{"op": "add", "path": f"/{n}", "value": value} for n, value in enumerate(variants)]
    assert api["member"].patch(VARIANTS, operations, format="json").status_code == 200


def add_strategy(api, browse, variants):
    sent = {"name": "flexibleRollout", "variants": variants}
    assert api["member"].post(STRATEGIES, sent, format="json").status_code == 200


def change_strategy(api, browse, variants):
    identifier = api["member"].post(STRATEGIES, {"name": "default"}, format="json").json()["id"]
    sent = {"name": "default", "variants": variants}
    assert api["member"].put(f"{STRATEGIES}/{identifier}", sent, format="json").status_code == 200


def default_strategy(api, browse, variants):
    path = "/api/admin/projects/shop/environments/development/default-strategy"
    sent = {"name": "flexibleRollout", "variants": variants}
    assert api["owner"].post(path, sent, format="json").status_code == 200
    assert api["owner"].post(f"{FLAG}/environments/development/on").status_code == 200


def import_variants(api, browse, variants):
    sent = body("cart", featureEnvironments=[switch("cart", variants=variants)])
    assert api["owner"].post("/api/admin/features-batch/import", sent, format="json").status_code == 200


def import_strategies(api, browse, variants):
    sent = body("cart", featureStrategies=[strategy("cart", variants=variants)])
    assert api["owner"].post("/api/admin/features-batch/import", sent, format="json").status_code == 200


def variants_form(api, browse, variants):
    sent = rows([each_variant["name"] for each_variant in variants])
    page = "/projects/shop/features/cart/variants?environmentId=development"
    assert browse("member").post(page, sent).status_code == 302


def strategy_form(api, browse, variants):
    sent = rows([each_variant["name"] for each_variant in variants]) | {
        "name": "flexibleRollout",
        "p-rollout": "100",
    }
    page = "/projects/shop/features/cart/strategies/new?environmentId=development"
    assert browse("member").post(page, sent | {"p-stickiness": "default"}).status_code == 302


WAYS_IN = [
    put_variants, patch_variants, add_strategy, change_strategy, default_strategy, import_variants,
    import_strategies, variants_form, strategy_form,
]  # fmt: skip


def stored_variants():
    row = FlagEnvironment.objects.get(flag__name="cart", environment="development")
    strategies = Strategy.objects.filter(flag__name="cart", environment="development")
    return row.variants or strategies.get().variants


@for_each("way_in", WAYS_IN)
def test_every_way_in(api, browse, shop, way_in):
    make_flag("cart")

    way_in(api, browse, [variant(name) for name in SENT])

    assert listed(stored_variants()) == STORED


@for_each("inline", ["environments-0-variants", "strategies-0-variants"])
def test_the_admin_site(site, shop, inline):
    cart = make_flag("cart")
    cart.environments.exclude(environment="development").delete()
    given = json.dumps([variant(name) for name in SENT])
    fields = {inline: given}
    if inline.startswith("strategies"):
        new = {"environment": "development", "name": "default", "sort_order": "0"}
        fields |= {"strategies-TOTAL_FORMS": "1", "strategies-0-parameters": "{}"}
        fields |= {"strategies-0-constraints": "[]"} | {f"strategies-0-{k}": v for k, v in new.items()}

    saved(send(site, f"/admin/projects/flag/{cart.pk}/change/", **fields))

    assert listed(stored_variants()) == STORED


@for_each("way_in", [put_variants, add_strategy])
def test_every_way_out(api, browse, shop, way_in):
    flag = make_flag("cart")
    way_in(api, browse, [variant(name) for name in SENT])
    switch_on(flag)
    sdk = client(make_token("backend", projects=["shop"], environment="development"))

    [delivered] = sdk.get("/api/client/features").json()["features"]
    export = {"environment": "development", "features": ["cart"]}
    exported = api["admin"].post("/api/admin/features-batch/export", export, format="json").json()
    asked = {"environment": "development", "projects": ["shop"], "context": {"userId": "1"}}
    [evaluated] = api["viewer"].post("/api/admin/playground", asked, format="json").json()["features"]

    assert listed(delivered["variants"] or delivered["strategies"][-1]["variants"]) == STORED
    switches, strategies = exported["featureEnvironments"], exported["featureStrategies"]
    assert listed(switches[0]["variants"] or strategies[-1]["variants"]) == STORED
    assert listed(evaluated["variants"]) == STORED


# What is stored stays --------------------------------------------------------------------------------------


@pytest.fixture
def of_version_1(shop):
    """A flag with a strategy whose variants version 1 stored: sorted by code points."""
    flag = make_flag("cart")
    variants = [variant(*pair) for pair in BY_VERSION_1]
    flag.environments.filter(environment="development").update(variants=variants)
    return Strategy.objects.create(
        flag=flag, environment_id="development", name="default", variants=variants, sort_order=0
    )


def test_another_title_moves_nobody(api, of_version_1):
    path = f"{STRATEGIES}/{of_version_1.pk}"
    read = api["member"].get(path).json()

    assert api["member"].put(path, read | {"title": "new"}, format="json").status_code == 200

    of_version_1.refresh_from_db()
    assert (of_version_1.title, listed(of_version_1.variants)) == ("new", BY_VERSION_1)


def test_a_form_that_leaves_the_shares_moves_nobody(browse, of_version_1):
    sent = rows([name for name, _ in BY_VERSION_1])
    sent |= {f"v-{n}-was": name for n, (name, _) in enumerate(BY_VERSION_1)}
    sent |= {"v-1-payload-type": "string", "v-1-payload": "blue"}

    answer = browse("member").post("/projects/shop/features/cart/variants?environmentId=development", sent)

    assert answer.status_code == 302
    row = FlagEnvironment.objects.get(flag__name="cart", environment="development")
    assert listed(row.variants) == BY_VERSION_1
    assert row.variants[1]["payload"] == {"type": "string", "value": "blue"}


def test_an_import_of_what_is_stored_moves_nobody_but_other_shares_do(api, of_version_1):
    variants = [variant(*pair) for pair in BY_VERSION_1]
    import_variants(api, None, variants)
    row = FlagEnvironment.objects.get(flag__name="cart", environment="development")
    assert listed(row.variants) == BY_VERSION_1

    put_variants(api, None, [variant(*pair) for pair in [*BY_VERSION_1, ("D", 0)]])
    row = FlagEnvironment.objects.get(flag__name="cart", environment="development")
    assert listed(row.variants) == [("a", 250), ("B", 250), ("c", 250), ("D", 250)]

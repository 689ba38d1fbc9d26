"""…/variants: the variants of a flag in an environment."""

import pytest

from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text

PAGE = "/projects/shop/features/cart/variants?environmentId=development"
OVERRIDES = [{"contextName": "userId", "values": ["7"]}]


@pytest.fixture
def place(shop):
    row = make_flag("cart").environments.get(environment="development")
    row.variants = [{"name": "old", "weight": 1000, "weightType": "variable", "overrides": OVERRIDES}]
    row.save()
    return row


def test_variants_are_replaced_and_overrides_stay_with_theirs(browse, place):
    sent = {"v": ["0", "1"], "v-0-name": "renamed", "v-0-was": "old", "v-1-name": "new"}

    answer = browse("member").post(PAGE, sent)

    assert answer["Location"] == "/projects/shop/features/cart/"
    place.refresh_from_db()
    assert [(v["name"], v["weight"], v.get("overrides")) for v in place.variants] == [
        ("new", 500, None),
        ("renamed", 500, OVERRIDES),
    ]


def test_a_share_that_is_typed_is_fixed_and_the_others_share_the_rest(browse, place):
    sent = {
        "v": ["0", "1", "2"],
        "v-0-name": "a", "v-0-shown": "33.4", "v-0-percent": "80",
        "v-1-name": "b", "v-1-shown": "33.3", "v-1-percent": "33.3",
        "v-2-name": "c", "v-2-shown": "33.3", "v-2-percent": "33.3",
    }  # fmt: skip

    browse("member").post(PAGE, sent)

    place.refresh_from_db()
    saved = [(v["name"], v["weight"], v["weightType"]) for v in place.variants]
    assert saved == [("a", 800, "fix"), ("b", 100, "variable"), ("c", 100, "variable")]


def test_rows_are_added_and_removed_without_saving_by_those_who_may(browse, place):
    assert "Always for userId 7" in browse("member").get(PAGE).text

    row = {"v": "0", "v-0-name": "old", "v-0-was": "old"}

    assert 'name="v-1-name"' in browse("member").post(PAGE, row | {"do": "add-variant"}).text
    assert 'name="v-0-name"' not in browse("member").post(PAGE, row | {"do": "remove-variant-0"}).text
    place.refresh_from_db()
    assert len(place.variants) == 1

    assert browse("reader").get(PAGE).status_code == 403
    assert browse("reader").post(PAGE, {}).status_code == 403
    assert browse("outsider").get(PAGE).status_code == 404


@for_each(
    ("sent", "problem"),
    [
        ({"v-0-name": ""}, "a name is required"),
        ({"v-0-name": "a", "v-0-shown": "33.4", "v-0-percent": "much"}, "Enter a percentage from 0 to 100."),
        ({"v-0-name": "a", "v-0-fixed": "on", "v-0-percent": "101"}, "Enter a percentage from 0 to 100."),
        (
            {"v-0-name": "a", "v-0-payload-type": "number", "v-0-payload": "x"},
            "SDKs cannot read x as a number",
        ),
    ],
)
def test_what_is_wrong_is_told_in_its_row(browse, place, sent, problem):
    refused = browse("member").post(PAGE, {"v": "0", **sent})

    assert refused.status_code == 400
    assert problem in refused.text.split('id="v-0-error"')[1]


ALL_FIXED = {"v": "0", "v-0-name": "a", "v-0-fixed": "on", "v-0-percent": "100"}
TOO_MUCH = {
    "v": ["0", "1", "2"], "v-0-name": "a", "v-0-fixed": "on", "v-0-percent": "80",
    "v-1-name": "b", "v-1-fixed": "on", "v-1-percent": "60.5", "v-2-name": "c",
}  # fmt: skip
ABOVE = [
    (ALL_FIXED, "Leave at least one variant without a fixed percentage. It gets the rest."),
    (TOO_MUCH, "The fixed percentages add up to 140.5 %. The maximum is 100 %."),
]


@for_each(("sent", "problem"), ABOVE)
def test_problems_of_all_variants_are_shown_above_them_in_percent(browse, place, sent, problem):
    refused = browse("member").post(PAGE, sent)

    assert refused.status_code == 400
    assert problem in refused.text
    assert "weight" not in refused.text.split("</form>")[0]


@for_each(("sent", "problem"), ABOVE)
def test_a_strategys_variants_are_refused_in_percent(browse, place, sent, problem):
    strategy = {"name": "default", "v-0-was": ""} | sent

    refused = browse("member").post(
        "/projects/shop/features/cart/strategies/new?environmentId=production", strategy
    )

    assert refused.status_code == 400
    assert problem in refused.text
    assert "weightType" not in refused.text


def test_a_change_in_production_is_asked_about_first(browse, shop):
    row = make_flag("cart").environments.get(environment="production")
    page, sent = PAGE.replace("development", "production"), {"v": "0", "v-0-name": "new"}

    asked = browse("member").post(page, sent)

    assert asked.status_code == 200
    assert "Save variants to production?" in asked.text
    assert "new 100 %" in asked.text
    row.refresh_from_db()
    assert row.variants == []
    assert browse("member").post(page, sent | {"confirmed": "yes"}).status_code == 302
    row.refresh_from_db()
    assert [variant["name"] for variant in row.variants] == ["new"]
    assert browse("member").post(page, sent).status_code == 302  # nothing changes


def test_a_payload_that_sdks_cannot_read_is_saved_when_confirmed(browse, place):
    sent = {"v": "0", "v-0-name": "a", "v-0-payload-type": "number", "v-0-payload": "x"}
    asked = browse("member").post(PAGE, sent)
    assert asked.status_code == 400
    assert 'name="keep_unreadable"' in asked.text
    assert browse("member").post(PAGE, sent | {"keep_unreadable": "yes"}).status_code == 302
    place.refresh_from_db()
    assert place.variants[0]["payload"] == {"type": "number", "value": "x"}


def test_strategies_with_variants_of_their_own_are_named(browse, place):
    variants = [{"name": name, "weight": 500, "weightType": "variable"} for name in ("blue", "green")]
    add_strategy(place.flag, "development", variants=variants)

    page = page_text(browse("member").get(PAGE))

    assert "Strategies that have: strategy 1 (blue 50 %, green 50 %)." in page

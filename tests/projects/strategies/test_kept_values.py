"""Long stored values stay on the server while their form is filled in, and are never lost."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projects.models import Segment, StrategyType
from tests.support.editor_form import Form
from tests.support.examples import examples
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text

FLAG = "/projects/shop/features/cart/"
ODD = st.characters(codec="utf-8", exclude_characters="\0")
LISTS = st.lists(st.text(st.one_of(st.sampled_from(' ,"\n\r\u2028'), ODD), min_size=1, max_size=100))
LONG = LISTS.map(lambda values: [*values, *(f"{number} {'v' * 90}" for number in range(20))])
MANY = [f"{number:03}{'v' * 97}" for number in range(250)]


@pytest.fixture
def strategy(shop):
    return add_strategy(
        make_flag("cart"), "production", "flexibleRollout",
        parameters={"rollout": "25", "stickiness": "userId", "groupId": "cart"},
        constraints=[one_of("city", MANY)],
    )  # fmt: skip


def one_of(field, values):
    return {
        "contextName": field,
        "operator": "IN",
        "values": values,
        "inverted": False,
        "caseInsensitive": False,
    }


def address(strategy):
    return f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy.pk}"


def sent_by(page):
    return Form(page.text).sent | {"confirmed": "yes"}


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(LISTS.filter(bool), LONG), min_size=1, max_size=4))
def test_an_edit_of_something_else_leaves_all_values_as_they_are(browse, strategy, lists):
    strategy.constraints = [one_of(f"field{number}", values) for number, values in enumerate(lists)]
    strategy.save()
    browser = browse("member")
    sent = sent_by(browser.get(address(strategy)))

    again = sent_by(browser.post(address(strategy), sent | {"title": "New", "do": "refresh"}))
    answer = browser.post(address(strategy), again)

    assert answer.status_code == 302
    strategy.refresh_from_db()
    assert strategy.title == "New"
    assert [constraint["values"] for constraint in strategy.constraints] == lists


def test_values_are_put_into_the_form_and_shortened_again(browse, strategy):
    strategy.constraints = [one_of("city", MANY), one_of("town", MANY[1:])]
    strategy.save()
    browser = browse("member")
    closed = sent_by(browser.get(address(strategy)))
    assert {"c-0-kept", "c-1-kept"} <= closed.keys()

    opened = sent_by(browser.post(address(strategy), closed | {"do": "show-values-0"}))
    other = sent_by(browser.post(address(strategy), opened | {"do": "show-values-1"}))

    assert opened["c-0-values"] == ["\r\n".join(MANY)]
    assert "c-0-kept" not in opened
    assert "c-0-kept" in other
    assert "c-1-values" in other


def test_changed_values_stay_in_the_form_and_another_operator_keeps_them(browse, strategy):
    browser = browse("member")
    opened = sent_by(
        browser.post(address(strategy), sent_by(browser.get(address(strategy))) | {"do": "show-values-0"})
    )
    changed = opened | {"c-0-values": "\r\n".join(MANY[:-1]), "condition-field": "x", "do": "refresh"}

    assert sent_by(browser.post(address(strategy), changed))["c-0-values"] == ["\r\n".join(MANY[:-1])]

    sent = sent_by(browser.get(address(strategy)))

    browser.post(address(strategy), sent | {"c-0-operator": "NOT_IN"})

    strategy.refresh_from_db()
    assert strategy.constraints[0] == one_of("city", MANY) | {"operator": "NOT_IN"}


@for_each("versioned", [True, False])
def test_values_that_somebody_else_changed_are_refused_and_stay(browse, strategy, versioned):
    browser = browse("member")
    sent = sent_by(browser.get(address(strategy))) | {"title": "Mine"}
    strategy.constraints = [one_of("city", ["Oslo"])]
    strategy.save()
    if not versioned:
        del sent["expected"]

    refused = browser.post(address(strategy), sent)
    again = browser.post(address(strategy), sent_by(refused))

    assert refused.status_code in (400, 409)
    assert "The stored values have changed since you opened this page." in page_text(refused)
    assert again.status_code == 400  # without other values it cannot be saved
    strategy.refresh_from_db()
    assert strategy.constraints[0]["values"] == ["Oslo"]


def test_a_long_parameter_is_kept_and_edited_on_demand(browse, strategy):
    StrategyType.objects.create(name="userWithId", parameters=[{"name": "userIds", "type": "list"}])
    ids = ", ".join(map(str, range(1000)))
    strategy.name, strategy.parameters, strategy.constraints = "userWithId", {"userIds": ids}, []
    strategy.save()
    browser = browse("member")
    sent = sent_by(browser.get(address(strategy)))
    assert "p-userIds" not in sent

    browser.post(address(strategy), sent | {"title": "New"})
    strategy.refresh_from_db()
    assert (strategy.title, strategy.parameters) == ("New", {"userIds": ids})

    shown = browser.post(
        address(strategy), sent_by(browser.get(address(strategy))) | {"do": "show-parameter-userIds"}
    )
    browser.post(address(strategy), sent_by(shown) | {"p-userIds": "7"})
    strategy.refresh_from_db()
    assert strategy.parameters == {"userIds": "7"}


def test_variants_without_a_row_and_long_payloads_are_kept(browse, strategy):
    variants = [
        {"name": f"v{number:03}", "weight": 10, "weightType": "fix", "stickiness": "default"}
        | {"payload": {"type": "string", "value": f"{number}{'p' * 2000}"}}
        for number in range(99)
    ] + [{"name": "v999", "weight": 10, "weightType": "variable", "stickiness": "default"}]
    strategy.variants = variants
    strategy.save()
    browser = browse("member")
    page = browser.get(address(strategy))
    sent = sent_by(page)
    assert len(sent["v"]) == 20
    assert len(page.content) < 150_000

    browser.post(address(strategy), sent | {"title": "New"})
    strategy.refresh_from_db()
    assert (strategy.title, strategy.variants) == ("New", variants)

    more = sent_by(
        browser.post(address(strategy), sent_by(browser.get(address(strategy))) | {"do": "show-variants"})
    )
    opened = sent_by(browser.post(address(strategy), more | {"do": "show-payload-30"}))
    assert len(opened["v"]) == 40
    browser.post(address(strategy), opened | {"v-30-payload": "short"})
    strategy.refresh_from_db()
    assert strategy.variants[30]["payload"]["value"] == "short"
    assert [*strategy.variants[:30], *strategy.variants[31:]] == [*variants[:30], *variants[31:]]


def test_values_of_segments_are_kept(browse, shop):
    segment = Segment.objects.create(name="vip", constraints=[one_of("city", MANY)])
    browser = browse("editor")
    sent = Form(browser.get(f"/segments/{segment.pk}/").text).sent

    browser.post(f"/segments/{segment.pk}/", sent | {"description": "New"})

    segment.refresh_from_db()
    assert (segment.description, segment.constraints[0]["values"]) == ("New", MANY)


def test_values_of_a_copied_strategy_come_along(browse, strategy):
    new = f"{FLAG}strategies/new?environmentId=development&copy={strategy.pk}&from=production"
    browser = browse("member")

    browser.post(new, sent_by(browser.get(new)))

    copied = strategy.flag.strategies.get(environment="development")
    assert copied.constraints[0]["values"] == MANY


def test_a_strategy_at_all_its_limits_has_a_small_page(browse, strategy):
    strategy.constraints = [one_of(f"field{number}", MANY) for number in range(30)]
    strategy.save()
    browser = browse("member")

    page = browser.get(address(strategy))
    opened = browser.post(address(strategy), sent_by(page) | {"do": "show-values-7"})

    assert len(page.content) < 150_000
    assert len(opened.content) < 200_000
    assert sum(len(value) for values in sent_by(page).values() for value in values) < 10_000

"""/playground/who-changes/: the states, the contexts, the flags that change, and their examples."""

import csv
import json
import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from playground.models import KeptContext, SavedContext
from projects.models import FlagEnvironment
from tests.support.flags import add_strategy
from tests.support.for_each import for_each
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
URL = "/playground/who-changes/"
SIDES = {"from": "development", "to": "production"}


def half(name: str, percent: int = 50) -> dict[str, Any]:
    return {
        "name": "flexibleRollout",
        "parameters": {"rollout": str(percent), "stickiness": "userId", "groupId": name},
    }


@pytest.fixture
def flags(shop: Any) -> None:
    """``half`` is on for half of the users in production, ``less`` for fewer in development, ``same`` in both."""
    live_flag("half", strategies=[half("half")])
    for name, percent in (("less", 25), ("same", 50)):
        flag = live_flag(name, strategies=[half(name)])
        FlagEnvironment.objects.filter(flag=flag, environment="development").update(enabled=True)
        add_strategy(flag, "development", **half(name, percent))


def ask(browse: Any, who: str = "viewer", **query: Any) -> Any:
    return browse(who).get(f"{URL}?{urlencode({**SIDES, 'users': 400} | query, doseq=True)}")


def rows(response: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(b"".join(response.streaming_content).decode().splitlines()))


def test_nothing_is_compared_before_it_is_asked(browse: Any, flags: None) -> None:
    page = browse("viewer").get(URL).text
    assert "Choose what to compare" in page
    assert "<option selected>production</option>" in page


def test_flags_with_numbers_examples_and_reasons(browse: Any, flags: None) -> None:
    page = ask(browse).text
    assert "2 of 3 flags change" in page
    assert "of 400 generated users see a change" in page
    assert page.index("who-half") < page.index("who-less")  # the most users first
    assert "who-same" not in page
    assert "and the rollout stops at 25 %" in page
    assert (
        "/playground/flag/half/?environment=development&amp;environment=production&amp;context.userId="
        in page
    )


def test_filters_and_csv(browse: Any, flags: None) -> None:
    assert "who-less" not in ask(browse, q="HAL").text
    assert "No flags match" in ask(browse, change="variant").text
    listed = {row["Flag"]: row for row in rows(ask(browse, format="csv"))}
    assert listed.keys() == {"half", "less"}
    assert 150 < int(listed["half"]["Off → on"]) < 250
    assert listed["half"]["Users"] == "400"
    back = {
        row["Flag"]: row
        for row in rows(ask(browse, format="csv", **{"from": "production", "to": "development"}))
    }
    assert back["half"]["On → off"] == listed["half"]["Off → on"]


def test_one_flag_has_all_who_change(browse: Any, flags: None) -> None:
    [row] = [row for row in rows(ask(browse, format="csv")) if row["Flag"] == "half"]
    who = rows(ask(browse, only="half", format="csv"))
    assert len(who) == int(row["Change"])
    assert {(each["Before"], each["After"]) for each in who} == {("Off", "On")}
    assert all(each["Why after"].endswith("50 % rollout") for each in who)
    page = ask(browse, only="half", page="2").text
    assert f"51–100 of {len(who)}" in page
    assert ask(browse, only="nosuch").status_code == 404


def test_the_same_link_gives_the_same_users(browse: Any, flags: None) -> None:
    first, again, other = (ask(browse, seed=seed, format="csv") for seed in ("7", "7", "8"))
    assert rows(first) == rows(again) != rows(other)


def test_values_that_all_sampled_users_have(browse: Any, shop: Any) -> None:
    place = {"contextName": "country", "operator": "IN", "values": ["DE", "NO"]}
    for number in (1, 2):
        live_flag(f"flag-{number}", strategies=[{"name": "default", "constraints": [place]}])
    assert "<b>400</b> of 400 generated users see a change" not in ask(browse).text
    page = ask(browse, fixed="country=DE, plan=pro").text
    assert "<b>400</b> of 400 generated users see a change" in page
    assert 'value="country=DE, plan=pro"' in page
    assert "fixed=country%3DDE%2C+plan%3Dpro" in page  # of the swapped states
    assert "users see a change (0 %)" in ask(browse, fixed="country=US").text
    refused = ask(browse, fixed="country")
    assert refused.status_code == 400
    assert "All have: must be like country=DE, plan=pro, not country" in refused.text


def test_contexts_made_from_the_rules(browse: Any, flags: None) -> None:
    page = ask(browse, **{"for": "rules"}).text
    assert re.search(r"of \d+ contexts see a change", page)


def test_pasted_contexts_however_long(browse: Any, flags: None) -> None:
    browser = browse("viewer")
    contexts = json.dumps([{"userId": f"{number}"} for number in range(5_000)])
    response = browser.post(URL, SIDES | {"for": "json", "json": contexts})
    assert KeptContext.objects.count() == 1
    page = browser.get(response["Location"])
    assert "of 5,000 contexts see a change" in page.text
    assert len(page.content) < 100_000  # the contexts are not sent back
    kept = re.search(r'name="kept" value="(\w+)"', page.text)[1]
    assert (
        browser.post(URL, SIDES | {"for": "json", "json": "", "kept": kept})["Location"]
        == response["Location"]
    )
    short = browser.post(URL, SIDES | {"for": "json", "json": '{"userId": "1"}', "kept": kept})["Location"]
    assert "of 1 context see" in browser.get(short).text.replace("sees", "see")


def test_saved_contexts_by_name(browse: Any, flags: None) -> None:
    for number in range(20):
        SavedContext.objects.create(name=f"Person {number}", context={"userId": str(number)})
    page = ask(browse, **{"for": "saved"}).text
    assert "of 20 contexts see a change" in page
    assert "<b>Person " in page
    page = ask(browse, **{"for": "saved", "saved": ["Person 1", "Person 2"]}).text
    assert "of 2 contexts see a change" in page


@for_each(
    ("query", "message"),
    [
        ({"from": "nowhere"}, "nowhere"),
        ({"users": "0"}, "Users: "),
        ({"users": "many"}, "Users: "),
        ({"for": "json", "json": "[{"}, "Invalid JSON (line 1"),
        ({"for": "json", "json": "3"}, "JSON: must be a list of contexts"),
        ({"for": "json", "json": '[{"userId": "1"}, 7]'}, "JSON[1]: "),
        ({"for": "json"}, "Paste a list of contexts as JSON."),
        ({"for": "json", "kept": "nosuch"}, "no longer stored"),
        ({"flag": "nosuch"}, "flag nosuch not found"),
        ({"project": "nosuch"}, "nosuch"),
        ({"for": "saved", "saved": "nosuch"}, "saved context nosuch not found"),
    ],
)
def test_problems_are_listed_above_the_form(browse: Any, flags: None, query: Any, message: str) -> None:
    response = ask(browse, **query)
    assert response.status_code == 400
    assert message in response.text
    assert "Fix the errors in the form" in response.text


def test_nobody_changes(browse: Any, flags: None) -> None:
    assert "No change" in ask(browse, **{"from": "production"}).text


def test_what_no_sampled_user_meets(browse: Any, shop: Any) -> None:
    needs = [
        {"contextName": f"field-{number}", "operator": "IN", "values": [str(number)]} for number in range(16)
    ]
    live_flag("narrow", strategies=[{"name": "default", "constraints": needs}])
    page = ask(browse).text
    assert "1 of 1 flag changes" in page
    assert re.search(r"0 % · \d+ edge cases?", page)
    [row] = rows(ask(browse, format="csv"))
    assert row["Change"] == "0"
    assert {each["Before"] for each in rows(ask(browse, only="narrow", format="csv"))} == {"Off"}


def test_long_names_and_values_keep_the_page_small(browse: Any, shop: Any) -> None:
    for number in range(30):
        name = f"{number:02}".ljust(100, "x")
        values = [f"{number}-{value}".ljust(500, "y") for value in range(5)]
        constraints = [{"contextName": "plan", "operator": "IN", "values": values}]
        live_flag(name, strategies=[half(name) | {"constraints": constraints}])
    page = ask(browse, **{"for": "rules"})
    assert "1–25 of 30" in page.text
    assert len(page.content) < 200_000


def test_a_moment_in_the_past(browse: Any, api: Any, flags: None) -> None:
    then = timezone.now()
    switch = "/api/admin/projects/shop/features/half/environments/production/off"
    assert api["admin"].post(switch).status_code == 200
    query = {"from": "production", "from-at": then.isoformat()}
    [row] = rows(ask(browse, format="csv", **query))
    assert (row["Flag"], row["Off → on"]) == ("half", "0")
    assert int(row["On → off"]) == int(row["Change"]) > 100
    page = ask(browse, **query).text
    explain = unescape(re.search(r'href="([^"]*)"[^>]*>Explain', page)[1])
    both = browse("viewer").get(explain).text
    assert "of 3 flags differ" in both
    assert 'class="outcome on"' in both
    assert 'class="outcome off"' in both
    assert "?from=production&amp;to=production&amp;to-at=" in page  # swapped
    assert f'name="from-at" value="{then:%Y-%m-%dT%H:%M:%S}"' in page
    assert "From, at: " in ask(browse, **{"from-at": "tomorrow"}).text
    assert "?from=production&amp;from-at=" in browse("viewer").get(URL).text


def test_the_flag_page_leads_to_it(browse: Any, flags: None) -> None:
    browser = browse("viewer")
    assert f'href="{URL}?flag=half"' in browser.get("/projects/shop/features/half/").text
    assert "of 10,000 generated users see a change" in browser.get(f"{URL}?flag=half").text


def test_ids_are_as_they_were_sent_but_for_spreadsheets(browse: Any, flags: None) -> None:
    contexts = json.dumps([{"userId": f"+{number}"} for number in range(20)])
    given = {"only": "half", "for": "json", "json": contexts, "format": "csv"}
    as_sent = [row["Context"] for row in rows(ask(browse, **given))]
    assert as_sent
    assert all("+" in who for who in as_sent)
    assert not any("'" in who for who in as_sent)
    quoted = [row["Context"] for row in rows(ask(browse, **given, spreadsheet="true"))]
    assert quoted == ["'" + who if who.startswith("+") else who for who in as_sent]
    assert "spreadsheet=true" in ask(browse, only="half").text

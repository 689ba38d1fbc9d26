"""The playground's pages: results for a context, permissions, and errors in the input."""

import csv
import io
import json
import re
from collections import Counter

import pytest

from projects.models import Environment
from tests.support.page_text import page_text
from tests.support.scenery import scenery

__all__ = ["scenery"]

ADA = {
    "environment": "production",
    "context.userId": "42",
    "context.plan": "pro",
    "context.appVersion": "4.5.1",
    "context.country": "NO",
}


@pytest.fixture
def viewer(scenery, browse):
    return browse("viewer")


def read_csv(response):
    return list(csv.reader(io.StringIO(b"".join(response.streaming_content).decode())))


def reasons(viewer, **question):
    rows = read_csv(viewer.get("/playground/", {**question, "format": "csv"}))
    return {name: (result, variant, why) for name, _, result, variant, why in rows[1:]}


def test_the_page_agrees_with_the_api(viewer, api):
    body = {"environment": "production", "context": {"userId": "42", "properties": {"plan": "pro"}}}
    answered = api["viewer"].post("/api/admin/playground", body).json()["features"]

    page = reasons(viewer, environment="production", **{"context.userId": "42", "context.plan": "pro"})

    del page["sampling"]  # random on each call
    words = {True: "On", False: "Off"}
    expected = {
        flag["name"]: words[flag["isEnabled"]]
        for flag in answered
        if flag["strategies"]["result"] != "unknown"
    }
    expected.pop("sampling", None)
    assert {name: page[name][0] for name in expected} == expected
    assert page["image-cdn-switch"][0] == "Can't tell"


def test_it_evaluates_without_being_asked_anything(viewer):
    response = viewer.get("/playground/")

    assert response.status_code == 200
    assert "userId was not given" in page_text(response) or "plan was not given" in page_text(response)


def test_results_can_be_filtered(viewer):
    on = page_text(viewer.get("/playground/", {**ADA, "result": "on"}))
    green = page_text(viewer.get("/playground/", {**ADA, "variant": "green"}))
    found = page_text(viewer.get("/playground/", {**ADA, "q": "CARDS"}))

    assert "search-v2" in on
    assert "Switched off" not in on
    assert "search-v2" in green
    assert "beta-dashboard" not in green
    assert "gift-cards" in found
    assert "13 flags" in found  # counts are over all


def test_several_contexts_stand_side_by_side_and_differences_come_first(viewer):
    question = {**ADA, "environment": ["production", "development"]}
    few = page_text(viewer.get("/playground/", question))
    every = page_text(viewer.get("/playground/", {**question, "show": "all"}))

    assert "1 of 13 flags differs" in few
    assert "apple-pay" not in few
    assert every.index("new-date-picker") < every.index("apple-pay")


def test_the_exception_of_an_environment_is_marked(viewer):
    question = {**ADA, "context.userId": "42,1,2", "context.region": "eu", "q": "dark-theme", "show": "all"}
    page = viewer.get("/playground/", question).text
    results = re.findall(r'<td class="(odd|)" data-label="userId (\d+)"><span class="outcome (\w+)">', page)

    usual = Counter(result for _, _, result in results).most_common(1)[0][0]
    assert len(results) == 3
    assert {user for odd, user, _ in results if odd} == {
        user for _, user, result in results if result != usual
    }
    assert any(odd for odd, _, _ in results)


def test_each_part_of_a_matrix_can_be_left_out(viewer):
    page = viewer.get("/playground/", {"environment": "production", "context.userId": "42,7", "show": "all"})

    link = "?environment=production&amp;context.userId=7&amp;show=all"
    assert re.search(rf'href="[^"]*{re.escape(link)}" aria-label="Leave out userId 42"', page.text)
    assert 'aria-label="Leave out production"' not in page.text


def test_other_results_keep_the_filters_and_start_at_page_one(viewer):
    answer = viewer.post(
        "/playground/?result=on&page=2", {"environment": "production", "context.userId": "7"}
    )

    assert answer["Location"] == "/playground/?environment=production&context.userId=7&result=on"


def test_while_one_types_problems_stand_where_the_results_were(viewer):
    bad = {"context.currentTime": "tomorrow"}
    page = viewer.get("/playground/", bad, headers={"HX-Request": "true", "HX-Target": "results"}).text
    results = page[page.index('id="results"') :]

    assert "currentTime: must be a date and time" in results


def test_values_between_commas_are_contexts_of_their_own(viewer):
    rows = read_csv(viewer.get("/playground/", {**ADA, "context.userId": "42,1", "format": "csv"}))

    assert rows[0][:4] == ["Flag", "Project", "Differs", "userId 42: result"]
    assert rows[0][7] == "userId 1: result"


def test_too_many_columns_are_refused_in_words(viewer):
    response = viewer.get("/playground/", {"context.userId": ",".join(map(str, range(13)))})

    assert response.status_code == 400
    assert "There are 13 combinations; the page shows at most 12 side by side." in response.text


def test_a_bad_time_is_said_beside_its_field(viewer):
    response = viewer.get("/playground/", {"context.currentTime": "tomorrow"})

    assert response.status_code == 400
    assert 'aria-describedby="field-currentTime_error"' in response.text
    assert "Must be a date and time with its offset" in response.text


def test_a_browsers_time_counts_as_utc(viewer):
    before = reasons(viewer, **ADA | {"context.currentTime": "2030-11-30T10:00"})
    after = reasons(viewer, **ADA | {"context.currentTime": "2030-12-02T10:00"})

    assert (before["winter-sale"][0], after["winter-sale"][0]) == ("Off", "On")


def test_json_instead_of_fields(viewer):
    time = "2026-11-21T09:00:00Z"
    context = {"userId": "42", "currentTime": time, "properties": {"plan": "pro"}}
    fields = {"context.userId": "42", "context.plan": "pro", "context.currentTime": time}

    in_json, in_fields = reasons(viewer, json=json.dumps(context)), reasons(viewer, **fields)

    del in_json["sampling"], in_fields["sampling"]  # random on each call
    assert in_json == in_fields


def test_json_in_several_environments(viewer):
    context = json.dumps({"userId": "42"})
    answer = viewer.get(
        "/playground/", {"json": context, "environment": ["production", "development"], "format": "json"}
    ).json()

    assert answer["input"]["context"] == {"userId": "42"}
    [search] = [flag for flag in answer["features"] if flag["name"] == "search-v2"]
    assert [search["environments"][name][0]["isEnabled"] for name in ("production", "development")] == [
        True,
        True,
    ]


def test_json_that_cannot_be_read(viewer):
    response = viewer.get("/playground/", {"json": "{nope"})

    assert response.status_code == 400
    assert "Invalid JSON (line 1, column" in response.text
    assert "{nope" in response.text


def test_json_download_is_what_the_api_answers(viewer):
    answer = viewer.get("/playground/", {**ADA, "format": "json"}).json()

    assert answer["input"]["context"]["userId"] == "42"
    assert {flag["name"] for flag in answer["features"]} >= {"apple-pay", "dark-theme"}


def test_the_curl_command_asks_the_same(viewer):
    page = page_text(viewer.get("/playground/", ADA))

    assert "curl -H \"Authorization: $TOKEN\" -H 'Content-Type: application/json'" in page
    assert '"properties":{"plan":"pro","appVersion":"4.5.1","country":"NO"}' in page


def test_one_flag_taken_apart(viewer):
    page = viewer.get("/playground/flag/dark-theme/", ADA)

    assert "plan is pro" in page.text
    assert '<rect class="inside" x="0" y="16" width="50%"' in page.text
    assert 'x1="52.50%"' in page.text
    assert "bucket 53" in page.text


def test_the_parents_own_reason_stands_with_it(viewer):
    page = page_text(viewer.get("/playground/flag/gift-cards/", ADA))

    assert "userId 42 is in bucket 92 and the rollout stops at 10 %" in page


def test_the_chosen_variant_is_marked(viewer):
    page = viewer.get("/playground/flag/search-v2/", ADA)

    assert 'aria-label="blue 50 %. green 50 %, chosen. "' in page.text
    assert "userId 42 is at 807 of 1000, which is variant green" in page.text


def test_an_unknown_flag_is_not_there(viewer):
    assert viewer.get("/playground/flag/nosuch/", ADA).status_code == 404


def test_edit_is_offered_to_those_who_may(scenery, browse):
    trace = "/playground/flag/dark-theme/"

    assert "strategies/edit?environmentId=production" in browse("admin").get(trace, ADA).text
    assert "strategies/edit" not in browse("viewer").get(trace, ADA).text


def test_the_matrix_marks_a_production_environment_whose_name_does_not(viewer):
    question = {"a.environment": "development", "b.environment": "production", "show": "all"}
    mark = '<span class="pill line">Production</span>'
    assert mark not in viewer.get("/playground/compare/", question).text

    Environment.objects.filter(name="development").update(type="production")
    page = viewer.get("/playground/compare/", question).text
    assert page.count(f"development {mark}</th>") == page.count(mark) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("context.currentTime", "tomorrow"), ("json", "{"), ("json", '{"userId": [1]}')]
)
@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("/playground/", ""),
        ("/playground/flag/dark-theme/", ""),
        ("/playground/compare/", "a."),
        ("/playground/compare/", "b."),
    ],
)
def test_a_context_that_cannot_be_read_is_refused_by_every_page(viewer, address, prefix, name, value):
    question = {f"{prefix}environment": "production", prefix + name: value}

    assert viewer.get(address, question).status_code == 400
    both = question | {"a.context.currentTime": "x", "b.context.currentTime": "x"}
    assert viewer.get("/playground/compare/", both).status_code == 400


def test_the_start_page_says_start_here_until_something_waits_or_was_evaluated(viewer, monkeypatch):
    assert "Start here" not in viewer.get("/").text  # something needs attention
    monkeypatch.setattr("flagadmin.console.start.list_attention", lambda caller: [])
    assert "Start here" in viewer.get("/").text
    viewer.get("/playground/", ADA)
    assert "Start here" not in viewer.get("/").text


def test_what_is_not_found_leads_back_to_all(viewer):
    table = viewer.get("/playground/", {**ADA, "q": "zzz"}).text
    assert "No flags match these filters." in table
    assert "Show all flags" in table

    matrix = viewer.get("/playground/compare/", {"q": "zzz"}).text
    assert "No flags match this search." in matrix

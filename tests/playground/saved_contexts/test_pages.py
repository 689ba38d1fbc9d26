"""/playground/contexts/ and the playground's form: contexts are chosen, saved and edited by name."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from playground.models import SavedContext
from playground.pages.form import MAX_OFFERED
from tests.support.cast import make_project
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag

PRO = {"userId": "42", "properties": {"plan": "pro"}}


@pytest.fixture
def ada(shop):
    live_flag("lounge", strategies=[{"name": "userWithId", "parameters": {"userIds": "42"}}])
    return SavedContext.objects.create(name="Ada", project=shop, context=PRO, note="Pays by invoice.")


def sent_to(response):
    assert response.status_code == 302, response.text
    return dict(parse_qsl(urlsplit(response["Location"]).query))


def test_listed(browse, ada):
    SavedContext.objects.create(name="Hidden", project=make_project("docs"))
    page = page_text(browse("reader").get("/playground/contexts/"))
    assert "Pays by invoice." in page
    assert "userId 42 · plan pro" in page
    assert "Hidden" not in page
    assert "New saved context" not in page
    assert "New saved context" in page_text(browse("member").get("/playground/contexts/?q=invoice"))


def test_a_link_fills_the_form(browse, ada):
    page = browse("reader").get("/playground/", {"saved": "Ada"})
    assert 'value="42"' in page.text
    assert "<option selected>Ada</option>" in page.text
    assert "lounge On" in " ".join(page_text(page).split())


def test_choosing_replaces_the_fields(browse, ada):
    sent = {
        "environment": "production",
        "saved": "Ada",
        "loaded": "",
        "context.userId": "7",
        "context.x": "1",
    }
    assert sent_to(browse("reader").post("/playground/", sent)) == {
        "environment": "production",
        "context.userId": "42",
        "context.plan": "pro",
    }


def test_changes_to_the_fields_are_kept(browse, ada):
    sent = {"environment": "production", "saved": "Ada", "loaded": "Ada", "context.userId": "7"}
    assert sent_to(browse("reader").post("/playground/", sent))["context.userId"] == "7"


def test_what_fields_cannot_hold_is_json(browse, ada):
    SavedContext.objects.create(name="Two", context={"properties": {"plan": "pro,free"}})
    answer = browse("reader").post("/playground/", {"environment": "production", "saved": "Two"})
    assert sent_to(answer)["json"] == '{\n  "properties": {\n    "plan": "pro,free"\n  }\n}'
    assert "<option selected>Two</option>" in browse("reader").get(answer["Location"]).text


def test_one_side_of_a_comparison(browse, ada):
    sent = {
        "a.environment": "production",
        "b.environment": "production",
        "b.saved": "Ada",
        "a.context.x": "1",
    }
    found = sent_to(browse("reader").post("/playground/compare/", sent))
    assert found["b.context.userId"] == "42"
    assert found["a.context.x"] == "1"


def test_a_name_that_is_not_found(browse, ada):
    page = browse("outsider").get("/playground/", {"saved": "Ada"})
    assert page.status_code == 400
    assert "saved context Ada not found" in page_text(page)


def test_so_many_are_offered(browse, shop):
    count = MAX_OFFERED + 2
    SavedContext.objects.bulk_create(
        SavedContext(name=f"User {number:03}", context={"userId": str(number)}) for number in range(count)
    )
    page = browse("reader").get("/playground/", {"saved": f"User {count - 1:03}"})
    assert page.text.count("<option>User") == MAX_OFFERED
    assert f"<option selected>User {count - 1:03}</option>" in page.text
    assert "All saved contexts" in page.text


def test_saved_from_the_playground(browse, shop):
    member = browse("member")
    page = member.get("/playground/", {"environment": "production", "context.userId": "42"})
    url = page.text.partition('id="save-context" href="')[2].partition('"')[0].replace("&amp;", "&")
    form = member.get(url)
    assert "&quot;userId&quot;: &quot;42&quot;" in form.text
    saved = {"name": "Ada", "project_id": "shop", "context": '{"userId": 42}', "note": ""}
    answer = member.post(url, saved)
    assert answer["Location"].startswith("/playground/?environment=production&context.userId=42")
    assert SavedContext.objects.get().context == {"userId": "42"}
    assert 'id="save-context"' not in browse("reader").get("/playground/").text


@for_each(
    ("context", "message"),
    [
        ("{", "Invalid JSON (line 1, column 2)"),
        ("[]", "Must be an object, not a list"),
        ('{"currentTime": "tomorrow"}', "Must be a date and time with its offset"),
        ('{"a": "\\u0000"}', "Must not contain a NUL character"),
    ],
)
def test_refused_beside_the_field(browse, ada, context, message):
    sent = {"name": "Bea", "project_id": "shop", "context": context}
    page = browse("member").post("/playground/contexts/new", sent)
    assert page.status_code == 400
    assert message in page_text(page)


def test_edited(browse, ada):
    url = f"/playground/contexts/{ada.pk}/"
    page = browse("member").get(url)
    expected = page.text.partition('name="expected" value="')[2].partition('"')[0]
    sent = {"name": "Ada L.", "note": "", "context": "{}", "expected": expected}
    assert browse("member").post(url, sent).status_code == 302
    ada.refresh_from_db()
    assert (ada.name, ada.note, ada.context, ada.updated_by) == ("Ada L.", "", {}, "member")


def test_a_reader_sees_and_does_not_edit(browse, ada):
    url = f"/playground/contexts/{ada.pk}/"
    page = browse("reader").get(url)
    assert "&quot;userId&quot;: &quot;42&quot;" in page.text
    assert "Save context" not in page.text
    assert browse("reader").post(url, {"name": "x", "context": "{}"}).status_code == 403
    assert browse("outsider").get(url).status_code == 404


def test_deleted(browse, ada):
    url = f"/playground/contexts/{ada.pk}/delete"
    assert "userId 42" in page_text(browse("member").get(url))
    assert browse("reader").post(url).status_code == 403
    assert browse("member").post(url)["Location"] == "/playground/contexts/"
    assert not SavedContext.objects.exists()


# Expectations -----------------------------------------------------------------------------------------------


def expected(flag, enabled=True, variant=None, environment="production"):
    return {"flag": flag, "environment": environment, "enabled": enabled, "variant": variant}


def rows(*expectations):
    """The form's inputs; an empty row counts for nothing."""
    given = [*expectations, expected("")]
    return {
        "expectations-flag": [one["flag"] for one in given],
        "expectations-environment": [one["environment"] for one in given],
        "expectations-enabled": ["on" if one["enabled"] else "off" for one in given],
        "expectations-variant": [one["variant"] or "" for one in given],
    }


@pytest.fixture
def expecting(ada):
    ada.expectations = [expected("lounge", False), expected("lounge", False, environment="development")]
    ada.save()
    return ada


def test_expectations_are_entered_in_rows(browse, ada):
    url = f"/playground/contexts/{ada.pk}/"
    given = [expected("lounge", variant="blue"), expected("lounge", False, environment="development")]
    sent = {"name": "Ada", "context": "{}"} | rows(*given)
    assert browse("member").post(url, sent).status_code == 302
    ada.refresh_from_db()
    assert ada.expectations == given
    page = browse("member").get(url)
    assert 'value="blue"' in page.text
    assert browse("member").post(url, {"name": "Ada", "context": "{}"} | rows()).status_code == 302
    ada.refresh_from_db()
    assert ada.expectations == []


def test_flags_are_offered(browse, ada):
    make_project("docs")
    live_flag("in-docs", "docs")
    offered = (
        browse("viewer").get(f"/playground/contexts/{ada.pk}/"),
        browse("admin").get("/playground/contexts/new"),
    )
    assert "<datalist" not in offered[0].text
    assert '<option value="in-docs">' in offered[1].text
    own = browse("member").get(f"/playground/contexts/{ada.pk}/").text
    assert '<option value="lounge">' in own
    assert "in-docs" not in own


def test_wrong_expectations_are_said_beside_them(browse, ada):
    url = f"/playground/contexts/{ada.pk}/"
    page = browse("member").post(url, {"name": "Ada", "context": "{}"} | rows(expected("nowhere")))
    assert page.status_code == 400
    assert "flag nowhere not found in shop" in page_text(page)
    assert 'value="nowhere"' in page.text


def test_what_is_met_is_listed(browse, expecting):
    page = page_text(browse("reader").get("/playground/expectations/"))
    assert "2 expectations" in page
    listed = browse("reader").get("/playground/contexts/").text
    assert '<td class="num" data-label="Expectations">2</td>' in listed
    unmet = page_text(browse("reader").get("/playground/expectations/?met=no&q=ada&environment=production"))
    assert "1 expectation" in unmet
    assert "userId 42" in unmet or "42" in unmet
    assert "0 expectations" in page_text(browse("reader").get("/playground/expectations/?q=nothing"))
    assert "No expectations yet" in page_text(browse("outsider").get("/playground/expectations/"))
    own = page_text(browse("reader").get(f"/playground/contexts/{expecting.pk}/"))
    assert "Expectations" in own
    trace = browse("reader").get("/playground/flag/lounge/?environment=production&saved=Ada")
    assert trace.status_code == 200


def test_the_start_page_says_what_is_not_met(browse, expecting):
    page = page_text(browse("reader").get("/"))
    assert "1 expectation is not met" in page
    assert "Ada should not get lounge in production, but it is on" in page
    assert "not met" not in page_text(browse("outsider").get("/"))

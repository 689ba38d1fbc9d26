"""/projects/ID/connect/: the token, the program, and the line that waits for the first request."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from groups.models import ApiToken
from projects.connect.queries import refusals
from projects.connect.snippets import read_snippets
from projects.models import Flag
from tests.support.cast import client, make_project, make_token
from tests.support.flags import make_flag
from tests.support.page_text import page_text

PAGE = "/projects/shop/connect/"
REGISTRATION = {
    "appName": "my-app",
    "instanceId": "i-1",
    "sdkVersion": "unleash-node-sdk:6.12.1",
    "strategies": ["default"],
    "started": "2026-11-21T03:26:33.451Z",
    "interval": 60000,
}


pytestmark = pytest.mark.usefixtures("no_earlier_refusals")


@pytest.fixture
def flag(shop):
    return make_flag("instant-refunds", shop)


def register(environment, app="my-app", projects=None):
    """An application that has a token of its own."""
    other = client(make_token("backend", environment=environment, projects=projects))
    other.post("/api/client/register", REGISTRATION | {"appName": app}, format="json")


def create_token(browser, **values):
    return browser.post(PAGE, {"environment": "development"} | values, follow=True)


def secret_of(answer):
    return re.search(r'id="token">([^<]+)<', answer.text)[1]


def live_url(answer):
    return re.search(r'data-news="([^"]+)"', answer.text)[1].replace("&amp;", "&")


def test_a_token_is_made_and_stands_in_the_program(browse, people, flag):
    answer = create_token(browse("member"), language="node")

    secret = secret_of(answer)
    assert secret.startswith("shop:development.")
    assert f'Authorization: "{secret}"' in page_text(answer)
    assert 'unleash.isEnabled("instant-refunds"' in page_text(answer)
    assert client(secret).get("/api/client/features").status_code == 200
    token = ApiToken.objects.get(prefix=secret[: len("shop:development.") + 6])
    assert (token.name, token.kind, token.created_by) == ("my-app", "backend", "member")


def test_it_is_shown_once(browse, people, flag):
    member = browse("member")
    answer = create_token(member, language="node")
    shown = answer.redirect_chain[-1][0]

    again = member.get(shown, follow=True)

    assert secret_of(answer) not in again.text
    assert "The program has TOKEN where my-app" in page_text(again)


def test_a_second_token_has_another_name(browse, people, flag):
    owner = browse("owner")
    create_token(owner)
    create_token(owner)
    assert set(ApiToken.objects.filter(created_by="owner").values_list("name", flat=True)) == {
        "my-app",
        "my-app-2",
    }


def lacks(browser, language):
    """What the page of a language, with a new token, does not have but should."""
    snippet, last = read_snippets()[language], ApiToken.objects.order_by("pk").last()
    answer = create_token(browser, language=language)
    program, token = page_text(answer), ApiToken.objects.order_by("pk").last()
    wanted = (f"http://testserver{snippet.address}", secret_of(answer), "instant-refunds")
    missing = [text for text in wanted if text not in program]
    return (
        missing if token != last and token.kind == snippet.kind else [*missing, f"a new {snippet.kind} token"]
    )


def test_each_language_has_a_program_for_the_server_and_a_token_of_its_kind(browse, people, flag):
    missing = {language: lacks(browse("owner"), language) for language in read_snippets()}
    faults = {language: texts for language, texts in missing.items() if texts}
    assert not faults, faults


def test_it_waits_until_the_token_is_used(browse, people, flag):
    owner = browse("owner")
    answer = create_token(owner)
    assert "Waiting for the first request" in page_text(answer)
    assert owner.get(live_url(answer)).status_code == 204

    client(secret_of(answer)).get("/api/client/features")

    live = page_text(owner.get(live_url(answer)))
    assert "Connected" in live
    assert "The token my-app was used just now" in live


def test_the_application_that_registered_is_named(browse, people, flag):
    admin = browse("admin")
    answer = create_token(admin)
    with_token = client(secret_of(answer))
    with_token.post("/api/client/register", REGISTRATION, format="json")

    live = admin.get(live_url(answer))
    assert "Connected: my-app" in page_text(live)
    assert "unleash-node-sdk 6.12.1" in page_text(live)

    now = timezone.now()
    toggles = {"instant-refunds": {"yes": 0, "no": 4}}
    bucket = {"start": now.isoformat(), "stop": now.isoformat(), "toggles": toggles}
    with_token.post("/api/client/metrics", REGISTRATION | {"bucket": bucket}, format="json")

    done = admin.get(live_url(live))
    assert "Asked for instant-refunds 4 times: off each time, because it is off in development" in page_text(
        done
    )
    assert "data-news" not in done.text


def test_an_application_with_another_token_is_not_taken_for_this_one(browse, people, flag):
    admin = browse("admin")
    answer = create_token(admin)
    register("development", "pod")
    assert admin.get(live_url(answer)).status_code == 204

    client(secret_of(answer)).post("/api/client/register", REGISTRATION, format="json")
    live = page_text(admin.get(live_url(answer)))
    assert "The token my-app was used just now" in live
    assert "Registered as" not in live


def test_pages_without_a_token(browse, people, flag, shop):
    answer = browse("admin").get(PAGE)
    register("development")
    assert "Connected: my-app" in page_text(browse("admin").get(live_url(answer)))

    make_flag("gift-cards", shop)
    text = page_text(browse("reader").get(f"{PAGE}?flag=instant-refunds"))
    assert 'isEnabled("instant-refunds"' in text
    assert 'isEnabled("gift-cards"' in page_text(browse("reader").get(f"{PAGE}?flag=unknown"))

    query = "language=cobol&environment=moon&flag=%00&token=99999999999999999999&since=²"
    assert browse("reader").get(f"{PAGE}?{query.replace('%00', 'x')}").status_code == 200

    reader = browse("reader")
    answer = reader.get(PAGE)

    assert "You may not create a backend token here. Ask owner" in page_text(answer)
    assert "Create token" not in answer.text
    assert browse("reader").post(PAGE, {"environment": "development"}).status_code == 403
    assert not ApiToken.objects.filter(created_by="reader").exists()

    Flag.objects.update(archived_at=timezone.now())
    assert "my-first-flag" in browse("reader").get(f"{PAGE}?flag=instant-refunds").text


def test_applications_of_other_projects_stay_unnamed_and_the_wrong_kind_is_named(browse, people, flag):
    """A new application has reported no flag yet, so nobody knows whose it is."""
    answer = create_token(browse("owner"))
    register("development", "secret-app", [make_project("secret").pk])
    assert browse("owner").get(live_url(answer)).status_code == 204

    client(make_token("frontend", environment="development")).get("/api/client/features")
    refusals.flush()

    text = page_text(browse("owner").get(live_url(answer)))
    assert "This is a frontend token; this endpoint accepts backend tokens only." in text


def test_one_that_registers_in_another_environment_is_named(browse, people, flag):
    admin = browse("admin")
    answer = create_token(admin)
    register("production")
    live = page_text(admin.get(live_url(answer)))
    assert "my-app registered in production just now, not in development" in live


def test_a_refused_request_is_shown_without_its_secret(browse, people, flag):
    owner = browse("owner")
    answer = create_token(owner)
    wrong = f"{secret_of(answer)[:-4]}zzzz".replace("development", "production")
    client(wrong).get("/api/client/features", headers={"Unleash-Sdk": "unleash-node-sdk:6.12.1"})
    refusals.flush()

    live = owner.get(live_url(answer))
    text = page_text(live)
    assert "Refused just now: this token is not known here." in text
    assert "sent a token that ends in …zzzz and is for production, not for development" in text
    assert wrong not in live.text
    assert secret_of(answer)[20:] not in live.text


def test_refusals_are_for_those_who_may_create_tokens(browse, people, flag):
    client().get("/api/client/features")
    refusals.flush()

    since = int((timezone.now() - timedelta(minutes=1)).timestamp() * 1000)
    assert "no token was sent" in page_text(browse("owner").get(f"{PAGE}?since={since}"))
    assert "no token was sent" not in page_text(browse("reader").get(f"{PAGE}?since={since}"))


def test_a_project_without_flags_and_an_archived_one(browse, people, shop):
    answer = browse("reader").get("/connect/")
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    make_project("other")
    assert "Other" in page_text(browse("admin").get("/connect/"))

    text = page_text(browse("owner").get(PAGE))
    assert 'isEnabled("my-first-flag"' in text
    assert "Shop has no flags yet." in text

    shop.archived_at = timezone.now()
    shop.save()
    assert browse("owner").get(PAGE).status_code == 404

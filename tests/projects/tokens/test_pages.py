"""/access/tokens/: visible tokens, the secret shown once, revoking."""

import re
from datetime import timedelta
from html import unescape

from django.utils import timezone

from groups.models import ApiToken
from tests.support.cast import client, make_project, make_token
from tests.support.for_each import for_each
from tests.support.openfeature import example
from tests.support.page_text import page_text

NEW = {"tokenName": "checkout", "type": "backend", "projects": ["shop"], "environment": "production"}


def secret_of(answer):
    return re.search(r'id="secret">([^<]+)<', answer.text)[1]


def names(browser, query=""):
    lines = b"".join(browser.get(f"/access/tokens/?format=csv&{query}").streaming_content).decode()
    return [line.split(",")[0] for line in lines.splitlines()[1:]]


def test_a_new_token_is_shown_once_and_works(browse, people, shop):
    admin = browse("admin")

    answer = admin.post("/access/tokens/new/", NEW, follow=True)

    assert answer.redirect_chain == [("/access/tokens/new/?created", 302)]
    assert "It has access to shop · production." in page_text(answer)
    secret = secret_of(answer)
    assert secret.startswith("shop:production.")
    assert f"-H 'Authorization: {secret}'" in page_text(answer)
    assert "no-store" in answer["Cache-Control"]
    assert client(secret).get("/api/client/features").status_code == 200
    assert secret not in admin.get("/access/tokens/").text


@for_each(("kind", "languages"), [("backend", ["js", "python"]), ("frontend", ["javascript"]), ("admin", [])])
def test_a_new_token_comes_with_programs_for_openfeature(browse, people, shop, kind, languages):
    """They are the guide's, which tests run."""
    admin = {"type": "admin", "environment": "*", "projects": ["*"]} if kind == "admin" else {}
    answer = browse("admin").post("/access/tokens/new/", NEW | {"type": kind} | admin, follow=True)

    marked = re.findall(r'<code id="openfeature-in-\w+">(.*?)</code>', answer.text, re.DOTALL)
    programs = [unescape(re.sub("</?mark>", "", program)) for program in marked]
    assert programs == [
        example(language, "http://testserver", secret_of(answer)).rstrip() for language in languages
    ]


@for_each(
    ("changed", "message"),
    [
        ({"projects": []}, "Choose the projects this token can access."),
        ({"projects": ["*", "shop"]}, "Select either all projects or single ones"),
        ({"environment": ""}, "Choose the environment this token can access."),
        ({"environment": "*"}, "A backend token is for one environment."),
        ({"type": "admin", "environment": "*"}, "An admin token has access to all projects"),
        ({"type": "admin", "projects": ["*"]}, "An admin token has access to all environments"),
        ({"type": ""}, "This field is required."),
        ({"expiresAt": "2020-01-01"}, "Enter a date in the future."),
    ],
)
def test_what_a_key_reaches_is_said_never_assumed(browse, people, shop, changed, message):
    answer = browse("admin").post("/access/tokens/new/", NEW | changed)

    assert answer.status_code == 400
    assert message in page_text(answer)
    assert not ApiToken.objects.exists()


def test_a_member_makes_and_sees_the_tokens_of_the_project_alone(browse, people, shop):
    make_project("other")
    make_token("backend", name="elsewhere", projects=["other"], environment="production")
    make_token("backend", name="both", projects=["other", "shop"], environment="production")
    member = browse("member")

    assert member.post("/access/tokens/new/", NEW).status_code == 302
    assert names(member) == ["both", "checkout"]
    assert member.post("/access/tokens/new/", NEW | {"projects": ["other"]}).status_code == 400
    assert "shop, 1 other · production" in page_text(member.get("/access/tokens/"))
    token = ApiToken.objects.get(name="both")
    assert f"/access/tokens/{token.pk}/revoke/" not in member.get("/access/tokens/").text
    assert member.post(f"/access/tokens/{token.pk}/revoke/").status_code == 403
    elsewhere = ApiToken.objects.get(name="elsewhere")
    assert member.get(f"/access/tokens/{elsewhere.pk}/revoke/").status_code == 404


@for_each(
    ("query", "expected"),
    [
        ("", ["alpha", "beta"]),
        ("q=ALP", ["alpha"]),
        ("kind=frontend", ["beta"]),
        ("environment=development", ["beta"]),
        ("sort=-name", ["beta", "alpha"]),
        ("use=expired", []),
    ],
)
def test_tokens_are_filtered_and_sorted(browse, people, shop, query, expected):
    make_token("backend", name="alpha", projects=["shop"], environment="production")
    make_token("frontend", name="beta", environment="development")
    make_token("personal", name="mine", user=people["admin"])

    assert names(browse("admin"), query) == expected


def test_automation_and_admin_tokens_are_listed_with_the_others(browse, people, shop):
    new = {"tokenName": "ci", "type": "automation", "may": ["toggle"]}
    make_token("admin", name="root")
    make_token("backend", name="web", projects=["shop"], environment="production")
    make_token("personal", name="mine", user=people["editor"])
    admin = browse("admin")
    admin.post("/access/tokens/new/", NEW | new)

    assert names(admin) == ["ci", "root", "web"]
    assert names(admin, "kind=automation") == ["ci"]
    page = admin.get("/access/tokens/?kind=automation")
    assert "ci: shop · production" in page_text(page)
    token = ApiToken.objects.get(name="ci")
    address = f"/access/service-accounts/{token.user_id}/tokens/{token.pk}/revoke/"
    assert address in page.text
    assert admin.get(address).status_code == 200
    assert names(browse("editor")) == ["web"]


@for_each("who", ["viewer", "outsider", "reader"])
def test_others_neither_see_nor_make_one(browse, people, shop, who):
    make_token("backend", name="hidden-key", projects=["shop"], environment="production")
    browser = browse(who)

    for answer in (
        browser.get("/access/tokens/"),
        browser.get("/access/tokens/new/"),
        browser.post("/access/tokens/new/", NEW),
        browser.post(f"/access/tokens/{ApiToken.objects.get().pk}/revoke/"),
    ):
        assert answer.status_code == 403
        assert "hidden-key" not in answer.text
    assert ApiToken.objects.count() == 1


def test_what_expires_soon_stands_out_and_is_found(browse, people, shop):
    now = timezone.now()
    for name, days in (("gone", -1), ("soon", 3), ("later", 40)):
        make_token(
            "backend", name=name, environment="production", expires_at=now + timedelta(days=days, hours=1)
        )
    admin = browse("admin")

    assert names(admin, "use=soon") == ["soon"]
    assert names(admin, "use=expired") == ["gone"]
    page = admin.get("/access/tokens/").text
    assert page.count('<span class="pill warn">in 3\xa0days</span>') == 1
    assert page.count('<span class="pill bad">expired</span>') == 1

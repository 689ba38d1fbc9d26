"""A token for a program that may change flags in one environment: the form, and what the token may do."""

import re

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError
from groups.models import ApiToken, Grant, Role, User
from projects.models import Flag, FlagEnvironment
from tests.support.cast import client, make_project
from tests.support.for_each import for_each
from tests.support.page_text import page_text

CI = {
    "type": "automation",
    "tokenName": "ci",
    "projects": ["shop"],
    "environment": "production",
    "may": ["toggle", "strategies", "variants"],
}


@pytest.fixture
def other(people, shop):
    return make_project("other")


def create(browser, **changed):
    return browser.post("/access/tokens/new/", CI | changed, follow=True)


def secret_of(answer):
    return re.search(r'id="secret">([^<]+)<', answer.text)[1]


def toggle(api, environment, project="shop", state="on"):
    return api.post(f"/api/admin/projects/{project}/features/cart/environments/{environment}/{state}")


@pytest.fixture
def cart(browse, people, shop, api):
    assert (
        api["admin"].post("/api/admin/projects/shop/features", {"name": "cart"}, format="json").status_code
        == 201
    )


def test_the_token_switches_in_production_and_nowhere_else(browse, cart, other, api):
    api["admin"].post("/api/admin/projects/other/features", {"name": "basket"}, format="json")
    answer = create(browse("admin"))

    program = client(secret_of(answer))
    assert toggle(program, "production").status_code == 200
    assert toggle(program, "development").status_code == 403
    path = "/api/admin/projects/other/features/basket/environments/production/on"
    assert program.post(path).status_code in (403, 404)
    create_flag = program.post("/api/admin/projects/shop/features", {"name": "new"}, format="json")
    assert create_flag.status_code == 403
    assert program.delete("/api/admin/projects/shop/features/cart").status_code == 403
    assert (
        program.post("/api/admin/segments", {"name": "s", "constraints": []}, format="json").status_code
        == 403
    )
    flag = Flag.objects.get(name="cart")
    on = FlagEnvironment.objects.filter(flag=flag, enabled=True)
    assert list(on.values_list("environment", flat=True)) == ["production"]


def test_the_page_says_what_was_made_and_leads_to_the_account(browse, people, shop):
    answer = create(browse("admin"))

    account = User.objects.get(username="ci")
    assert account.is_service
    page = page_text(answer)
    assert (
        "ci may turn flags on and off, add, edit and delete strategies and edit variants "
        "in production of shop. It changes nothing else." in page
    )
    assert "curl -H 'Authorization: user:" in page
    assert f'href="/access/service-accounts/{account.pk}/"' in answer.text
    kinds = AuditEvent.objects.order_by("id").values_list("type", flat=True)
    assert list(kinds) == [
        "service-account-created", "role-created", "project-access-added", "pat-created",
    ]  # fmt: skip


def test_a_role_with_the_same_permissions_is_used_again(browse, people, shop, other):
    admin = browse("admin")
    create(admin)
    create(admin, tokenName="ci-2", projects=["shop", "other"])
    create(admin, tokenName="ci-3", may=["toggle"])
    Role.objects.create(name="Switch flags in development", type="custom")
    create(admin, tokenName="ci-4", may=["toggle"], environment="development")

    granted = Grant.objects.filter(user__is_service=True).order_by("user__username", "project_id")
    assert list(granted.values_list("user__username", "project_id", "role__name")) == [
        ("ci", "shop", "Change flags in production"),
        ("ci-2", "other", "Change flags in production"),
        ("ci-2", "shop", "Change flags in production"),
        ("ci-3", "shop", "Switch flags in production"),
        ("ci-4", "shop", "Switch flags in development (2)"),
    ]


@for_each(
    ("changed", "message"),
    [
        ({"projects": ["*"]}, "An automation token is for single projects. Select them."),
        ({"may": []}, "Choose what it may change."),
        ({"tokenName": "member"}, "An account named member already exists."),
        ({"expiresAt": "2020-01-01"}, "Enter a date in the future."),
        ({"environment": ""}, "Choose the environment this token can access."),
    ],
)
def test_nothing_is_made_where_something_is_wrong(browse, people, shop, changed, message):
    answer = browse("admin").post("/access/tokens/new/", CI | changed)

    assert answer.status_code in (400, 409)
    assert message in page_text(answer)
    assert not User.objects.filter(username="ci").exists()
    assert not Role.objects.filter(type="custom").exists()


@pytest.mark.django_db(transaction=True)
def test_what_was_made_before_a_refusal_is_taken_back(browse, people, shop, monkeypatch):
    def refuse(*args, **kwargs):
        raise ValidationError.at("expiresAt", "refused")

    monkeypatch.setattr("projects.tokens.actions.create_personal_token", refuse)
    assert browse("admin").post("/access/tokens/new/", CI).status_code == 400
    assert not User.objects.filter(username="ci").exists()
    assert not Role.objects.filter(type="custom").exists()
    assert not AuditEvent.objects.exists()


def test_only_admins_are_offered_it(browse, people, shop):
    member = browse("member")

    assert "Automation" not in member.get("/access/tokens/new/").text
    assert member.post("/access/tokens/new/", CI).status_code == 400
    assert not ApiToken.objects.exists()


def test_a_link_chooses_kind_project_and_environment(browse, people, shop):
    page = (
        browse("admin").get("/access/tokens/new/?type=automation&projects=shop&environment=production").text
    )

    assert re.search(r'value="automation"[^>]* checked', page)
    assert re.search(r'value="shop"[^>]* checked', page)
    assert '<option value="production" selected>' in page


def test_many_projects_are_typed(browse, people, shop, monkeypatch):
    monkeypatch.setattr("projects.tokens.pages.MAX_OPTIONS", 0)

    assert "separated by commas" in browse("admin").get("/access/tokens/new/").text
    create(browse("admin"), projects="shop")
    assert Grant.objects.filter(user__username="ci", project=shop).exists()

"""Links that every new flag of a project gets."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag
from projects.models import FlagLink, Project
from projects.projects.links import link_template_problems
from tests.support.import_bodies import body
from tests.support.page_text import page_text

IMPORT = "/api/admin/features-batch/import"
SETTINGS = "/api/admin/projects/shop"
FEATURES = "/api/admin/projects/shop/features"
CODE = {"title": "Code", "urlTemplate": "https://code.example.com/{{project}}?q={{feature}}"}
TICKET = {"title": None, "urlTemplate": "tickets.example.com/{{feature}}/"}


@pytest.mark.parametrize(
    ("templates", "path"),
    [
        ("x", ""),
        ([CODE] * 11, ""),
        ([1], "[0]"),
        ([{"title": "x"}], "[0]"),
        ([CODE, CODE | {"urlTemplate": "javascript:{{feature}}"}], "[1].urlTemplate"),
        ([CODE | {"urlTemplate": 7}], "[0].urlTemplate"),
        ([CODE | {"title": "x" * 256}], "[0].title"),
    ],
)
def test_what_is_no_template_is_refused(templates: Any, path: str) -> None:
    [problem] = link_template_problems(templates)
    assert problem.path == f"linkTemplates{path}"


@pytest.mark.django_db
def test_a_new_flag_gets_the_links_of_its_project(api: Any, people: Any) -> None:
    saved = api["owner"].put(
        SETTINGS, {"linkTemplates": [CODE, {"urlTemplate": TICKET["urlTemplate"]}]}, format="json"
    )
    assert saved.status_code == 200, saved.content
    assert api["viewer"].get(f"{SETTINGS}/overview").json()["linkTemplates"] == [CODE, TICKET]
    assert api["member"].post(FEATURES, {"name": "cart"}, format="json").status_code == 201
    flag = api["viewer"].get(f"{FEATURES}/cart").json()
    assert [(link["url"], link["title"]) for link in flag["links"]] == [
        ("https://code.example.com/shop?q=cart", "Code"),
        ("https://tickets.example.com/cart", None),
    ]
    assert AuditEvent.objects.filter(type="feature-link-added", feature="cart").count() == 2
    cloned = api["member"].post(f"{FEATURES}/cart/clone", {"name": "trolley"}, format="json")
    assert cloned.status_code == 201, cloned.content
    assert [link["url"] for link in api["viewer"].get(f"{FEATURES}/trolley").json()["links"]] == [
        "https://code.example.com/shop?q=trolley",
        "https://tickets.example.com/trolley",
    ]
    # Flags keep their links whatever becomes of the templates.
    assert api["owner"].put(SETTINGS, {"linkTemplates": []}, format="json").status_code == 200
    assert FlagLink.objects.count() == 4


@pytest.mark.django_db
def test_a_flag_that_an_import_creates_gets_them_unless_the_file_has_its_links(api: Any, people: Any) -> None:
    Project.objects.filter(pk="shop").update(link_templates=[CODE])
    own = {"url": "https://example.com", "title": None}
    links = [{"feature": "own", "links": [own]}, {"feature": "none", "links": []}]
    for _ in range(2):
        assert api["admin"].post(IMPORT, body("cart", "own", "none", links=links)).status_code == 200
        rows = FlagLink.objects.order_by("flag__name").values_list("flag__name", "url")
        assert list(rows) == [("cart", "https://code.example.com/shop?q=cart"), ("own", own["url"])]


@pytest.mark.django_db
def test_a_refused_template_is_named_by_the_api(api: Any, people: Any) -> None:
    refused = api["owner"].put(SETTINGS, {"linkTemplates": [{"urlTemplate": "x y"}]}, format="json")
    assert refused.status_code == 400
    assert refused.json()["details"][0]["path"] == "linkTemplates[0].urlTemplate"


@pytest.mark.django_db
def test_they_are_lines_on_the_settings_page(browse: Any, people: Any) -> None:
    form = {"name": "Shop", "mode": "open", "default_stickiness": "default"}
    lines = f"{CODE['title']}  {CODE['urlTemplate']}\r\n\r\n{TICKET['urlTemplate']}"
    answer = browse("owner").post("/projects/shop/settings/", form | {"link_templates": lines})
    assert answer.status_code == 302
    assert Project.objects.get(pk="shop").link_templates == [CODE, TICKET]
    page = page_text(browse("owner").get("/projects/shop/settings/"))
    assert f"Code {CODE['urlTemplate']}" in page
    refused = browse("owner").post("/projects/shop/settings/", form | {"link_templates": "ftp://x"})
    assert (refused.status_code, "Must be a web URL" in page_text(refused)) == (400, True)


@pytest.mark.django_db
def test_a_name_that_makes_the_url_too_long_leaves_that_link_out(shop: Any, callers: Any) -> None:
    long = {"title": None, "urlTemplate": f"https://a.example/{'x' * 1900}{{{{feature}}}}"}
    Project.objects.filter(pk="shop").update(link_templates=[CODE, long])
    create_flag("shop", NewFlag(name="f" * 90), caller=Caller.system())
    assert [link.title for link in FlagLink.objects.all()] == ["Code"]

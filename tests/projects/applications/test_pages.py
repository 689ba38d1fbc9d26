"""/projects/ID/applications/ and /applications/NAME/: applications of a project, flags of an application."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from django.conf import settings

from projects.models import Application
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.page_text import csv_rows, page_text
from tests.support.sdk import make_sdk

URL = "/projects/shop/applications/"


def listed(browser, query="", url=URL):
    return csv_rows(browser.get(f"{url}?format=csv&{query}"))[1:]


def names(browser, query="", url=URL):
    return [line[0] for line in listed(browser, query, url)]


@pytest.fixture
def used(shop):
    """web in both environments with two versions, cron in production with a third one."""
    make_flag("cart")
    make_flag("search")
    development, production = make_sdk("development"), make_sdk("production")
    for sdk, instance, version in (
        (development, "web-1", "unleash-node-sdk:5.9.0"),
        (production, "web-2", "unleash-node-sdk:5.10.0"),
    ):
        sdk.register("web", instance, sdkVersion=version)
        sdk.count("web", ["cart", "search"], instance)
    production.register("cron", "cron-1", sdkVersion="unleash-go-sdk:4.1.0")
    production.count("cron", ["cart"], "cron-1")


def test_each_application_with_all_that_is_known_of_it(browse, used):
    page = browse("reader").get(URL)

    assert "2 applications" in page_text(page)
    assert "unleash-node-sdk 5.9.0 (oldest), 5.10.0" in page_text(page)
    assert "development, production" in page_text(page)
    assert "web-1" in page.text
    assert "unleash-go-sdk 4.1.0 (oldest" not in page_text(page)
    assert 'href="/applications/web/"' in page.text

    cron, web = listed(browse("reader"))

    assert cron[:4] == ["cron", "production", "1", "unleash-go-sdk 4.1.0"]
    assert web[:4] == [
        "web",
        "development, production",
        "2",
        "unleash-node-sdk 5.9.0, unleash-node-sdk 5.10.0",
    ]


@for_each(
    ("query", "expected"),
    [
        ("q=WEB", ["web"]),
        ("q=go-sdk", ["cron"]),
        ("environment=development", ["web"]),
        ("environment=production", ["cron", "web"]),
        ("q=cron&environment=development", []),
        ("sort=-name", ["web", "cron"]),
        ("sort=-instances", ["web", "cron"]),
        ("sort=environments", ["cron", "web"]),
    ],
)
def test_it_is_searched_filtered_and_sorted(browse, used, query, expected):
    assert names(browse("reader"), query) == expected
    page = browse("reader").get(f"{URL}?{query}")
    assert re.findall(r'href="/applications/(\w+)/"', page.text) == expected


def test_no_more_instances_are_written_than_the_limit(browse, used, settings):
    settings.APPLICATION_INSTANCES_LISTED = 1

    assert "and 1 more" in page_text(browse("reader").get(URL))


def test_pages_and_the_curl_command_follow_the_address(browse, used, monkeypatch):
    monkeypatch.setattr("projects.applications.pages.ApplicationsPage.per_page", 1)
    page = browse("reader").get(f"{URL}?sort=-last-seen&q=r,web&page=2")

    assert re.findall(r'href="/applications/(\w+)/"', page.text) == ["web"]
    assert "/applications?query=r%2Cweb&sortBy=lastSeen&sortOrder=desc&offset=1'" in unescape(page.text)


def test_the_number_of_queries_does_not_grow(browse, used, django_assert_max_num_queries):
    for number in range(20):
        make_sdk("production").count(f"more-{number}", ["cart"], "one")
    browser = browse("reader")
    with django_assert_max_num_queries(19):
        assert "22 applications" in page_text(browser.get(URL))


def test_a_project_nobody_uses(browse, shop):
    assert "No application has evaluated" in page_text(browse("reader").get(URL))


# One application ------------------------------------------------------------------------------------------


def test_what_an_application_uses(browse, used):
    make_flag("secret", project="default")
    make_sdk("production").count("web", ["secret"], "web-2")
    page = page_text(browse("reader").get("/applications/web/"))

    assert "shop in development, production" in page
    assert "unleash-node-sdk:5.10.0" in page
    assert listed(browse("reader"), url="/applications/web/") == [
        [flag, "shop", environment, moment]
        for flag, environment, moment in zip(
            ["cart", "cart", "search", "search"],
            ["development", "production"] * 2,
            [line[3] for line in listed(browse("reader"), url="/applications/web/")],
            strict=True,
        )
    ]
    assert "secret" not in page
    assert "secret" in names(browse("admin"), url="/applications/web/")


def test_its_flags_are_narrowed_down(browse, used):
    get_csv_lines = listed(browse("reader"), "q=CAR&environment=production", url="/applications/web/")

    assert [line[:3] for line in get_csv_lines] == [["cart", "shop", "production"]]


@for_each("name", ["team/web shop", "team\nweb\u2028shop"])
def test_a_name_with_a_slash_or_a_line_break_opens(browse, used, name):
    make_sdk("production").count(name, ["cart"], "one")

    address = f"/applications/{quote(name, safe='')}/"
    assert browse("reader").get(address).status_code == 200
    assert f'href="{address}"' in browse("reader").get(URL).text


def test_a_reader_is_not_offered_that_and_is_refused_in_words(browse, used):
    assert "Delete application" not in browse("reader").get("/applications/cron/").text
    answer = browse("reader").post("/applications/cron/")

    assert answer.status_code == 403
    assert 'You need the "Edit applications" permission.' in page_text(answer)
    assert Application.objects.filter(name="cron").exists()


@for_each("name", ["nosuch", "web"])
def test_what_is_not_there_or_not_to_be_seen_is_404(browse, used, name):
    assert browse("outsider").get(f"/applications/{name}/").status_code == 404


def test_the_window_is_named(browse, used):
    days = settings.APPLICATION_INSTANCE_WINDOW.days

    assert f"the last {days} days" in page_text(browse("reader").get(URL))


def test_an_instance_tells_what_its_sdk_is_wrapped_in(browse, used):
    make_sdk("development").register("web", "web-1", sdkFlavor="nestjs", sdkFlavorVersion="2.0.0")
    assert "unleash-node-sdk:5.9.0 in nestjs:2.0.0" in page_text(browse("reader").get("/applications/web/"))

"""Searching the applications list by name, SDK and environment."""

import pytest

from tests.support.applications import names
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.sdk import make_sdk

pytestmark = pytest.mark.django_db

APPS = {
    "portal-web": "unleash-client-node:5.10.0",
    "100%_sure": "unleash-client-go:4.1.0",
    "back\\slash": "unleash-client-go:4.2.0",
    "äpple": "unleash-client-java:9.2.0",
    "STRASSE": "unleash-client-java:9.2.1",
    "a,b": "nocolon",
    "zz top": "a:b:c",
}


@pytest.fixture
def apps(db: None) -> None:
    make_flag("flag", "default")
    sdk = make_sdk()
    for name, version in APPS.items():
        sdk.register(name, "instance-7", sdkVersion=version)
        sdk.count(name, ["flag"], "instance-7")
    make_sdk("production").count("portal-web", ["flag"], "p-1")


@for_each(
    ("query", "expected"),
    [
        ("portal", ["portal-web"]),
        ("PORTAL", ["portal-web"]),
        ("tal-w", ["portal-web"]),
        ("production", ["portal-web"]),
        ("PROD", ["portal-web"]),
        ("unleash-client-go", ["100%_sure", "back\\slash"]),
        ("unleash-client-go:4.1.0", ["100%_sure"]),
        ("a:b:c", ["zz top"]),
        ("ÄPP", ["äpple"]),
        ("straße", ["STRASSE"]),
        ("%", ["100%_sure"]),
        ("_", ["100%_sure"]),
        ("\\", ["back\\slash"]),
        ("p%l", []),
        ("portal,zz top", ["portal-web", "zz top"]),
        (" portal , ,zz ", ["portal-web", "zz top"]),
        ("instance-7", []),
        ("webdevelopment", []),
        ("b\x1fdev", []),
        ("nothing-here", []),
        (",", sorted(APPS)),
        ("  ", sorted(APPS)),
    ],
)
def test_a_search_finds_parts_of_names_sdks_and_environments(
    api, apps: None, query: str, expected: list[str]
) -> None:
    from urllib.parse import quote

    assert names(api, f"?query={quote(query)}") == expected


def test_a_match_narrows_no_record_and_the_total_is_of_the_matches(api, apps: None) -> None:
    answer = api["viewer"].get("/api/admin/projects/default/applications?query=production").json()
    record = answer["applications"][0]
    assert record["environments"] == ["development", "production"]
    assert record["instances"] == ["instance-7", "p-1"]
    assert record["sdks"] == [{"name": "unleash-client-node", "versions": ["5.10.0"]}]

    answer = api["viewer"].get("/api/admin/projects/default/applications?query=java&limit=1").json()
    assert (answer["total"], len(answer["applications"])) == (2, 1)
    past = api["viewer"].get("/api/admin/projects/default/applications?query=java&offset=9").json()
    assert past == {"total": 2, "applications": []}

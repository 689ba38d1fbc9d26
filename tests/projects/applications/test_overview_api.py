"""The overview of an application, and its editable details."""

import pytest

from projects.models import Application
from tests.support.flags import make_flag
from tests.support.records import events, refused
from tests.support.sdk import Sdk, make_sdk

pytestmark = pytest.mark.django_db
WEB = "/api/admin/metrics/applications/web"


@pytest.fixture
def web(shop, sdk: Sdk) -> None:
    make_flag("checkout", "default")
    make_flag("basket")
    sdk.register("web", "w-1", sdkVersion="unleash-go:1.0.0", strategies=["default", "byWeather"])
    sdk.count("web", ["checkout", "basket"], "w-1")
    make_sdk("production").register("web", "w-2")


def test_an_overview_counts_by_environment_what_may_be_read(api, web: None) -> None:
    body = api["viewer"].get(f"{WEB}/overview").json()
    assert (body["projects"], body["featureCount"]) == (["default", "shop"], 2)
    development, production = body["environments"]
    assert development.pop("lastSeen")
    assert development == {
        "name": "development",
        "instanceCount": 1,
        "sdks": ["unleash-go:1.0.0"],
        "frontendSdks": [],
        "backendSdks": ["unleash-go:1.0.0"],
        "issues": {"missingFeatures": [], "outdatedSdks": []},
    }
    assert (production["name"], production["sdks"]) == ("production", [])
    assert body["issues"] == {"missingStrategies": ["byWeather"]}

    body = api["reader"].get(f"{WEB}/overview").json()
    assert (body["projects"], body["featureCount"]) == (["shop"], 1)
    refused(api["outsider"].get(f"{WEB}/overview"), 404, "NotFoundError")


def test_notes_on_what_it_is(api, web: None, sdk: Sdk) -> None:
    response = api["editor"].post(WEB, {"url": "https://wiki.example/web", "icon": "web"}, format="json")
    assert (response.status_code, response.content) == (202, b"")
    assert api["editor"].post(WEB, {"icon": "web"}, format="json").status_code == 202
    overview = api["viewer"].get(WEB).json()
    assert (overview["url"], overview["icon"], overview["color"]) == ("https://wiki.example/web", "web", None)
    [event] = events("application-updated")
    assert (event.subject, event.before) == ("web", {"url": None, "icon": None})

    api["editor"].post(WEB, {"description": "The shop"}, format="json")
    sdk.register("web", "w-3")
    assert Application.objects.get(name="web").description == "The shop"

    refused(api["outsider"].post(WEB, {"icon": "web"}, format="json"), 404, "NotFoundError")
    refused(api["admin"].post(f"{WEB}x", {"icon": "web"}, format="json"), 404, "NotFoundError")
    refused(api["admin"].post(WEB, {"icon": 5, "color": []}, format="json"), 400, "ValidationError")

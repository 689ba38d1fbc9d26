"""Flag types and their expected lifetimes."""

from projects.models import FlagType
from tests.support.for_each import for_each
from tests.support.records import events, refused

TYPES = "/api/admin/feature-types"
LIFETIME = f"{TYPES}/release/lifetime"


def put(client, days, path=LIFETIME):
    return client.put(path, {"lifetimeDays": days}, format="json")


def test_the_types(api):
    body = api["viewer"].get(TYPES).json()
    assert body["version"] == 1
    assert [(kind["id"], kind["lifetimeDays"]) for kind in body["types"]] == [
        ("release", 40),
        ("experiment", 40),
        ("operational", 7),
        ("kill-switch", None),
        ("permission", None),
        ("sunset", 90),
    ]
    assert body["types"][3].keys() == {"id", "name", "description", "lifetimeDays"}


def test_an_admin_sets_a_lifetime(api):
    response = put(api["admin"], 50)
    assert (response.status_code, response.json()["lifetimeDays"]) == (200, 50)
    assert put(api["admin"], 50).status_code == 200
    [event] = events("feature-type-updated")
    assert (event.subject, event.before, event.after) == (
        "release",
        {"lifetimeDays": 40},
        {"lifetimeDays": 50},
    )

    refused(put(api["editor"], 50), 403, "NoAccessError")
    refused(put(api["admin"], 50, f"{TYPES}/nope/lifetime"), 404, "NotFoundError")


@for_each("days", [0, None])
def test_for_ever(api, days):
    assert put(api["admin"], days).json()["lifetimeDays"] is None
    assert FlagType.objects.get(pk="release").lifetime_days is None


@for_each("days", [-1, "soon", 10**9, 1.5])
def test_what_is_no_lifetime(api, days):
    record = refused(put(api["admin"], days), 400, "ValidationError")
    assert record["details"][0]["path"] == "lifetimeDays"

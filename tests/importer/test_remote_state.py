"""`{"remote": …}` in `POST playground/compare`: another installation as one of two states."""

import json

import pytest

from tests.support.generated_unleash import make_recording
from tests.support.playground import live_flag
from tests.support.receiver import LOOPBACK
from tests.support.recorded_unleash import replayed, send
from tests.support.records import refused

pytestmark = pytest.mark.django_db
API = "/api/admin/playground/compare"
SEVEN = {"contextName": "userId", "operator": "IN", "values": ["7"]}
ANSWER = {
    "features": [
        {
            "name": "cart",
            "project": "shop",
            "enabled": True,
            "strategies": [{"name": "default", "segments": [4]}],
        },
        {"name": "new", "project": "shop", "enabled": True, "strategies": [{"name": "default"}]},
        {"name": "else", "project": "elsewhere", "enabled": True, "strategies": []},
    ],
    "segments": [{"id": 4, "name": "seven", "constraints": [SEVEN]}],
}


@pytest.fixture
def unleash(settings):
    settings.INTEGRATION_NETWORKS = LOOPBACK
    with replayed(make_recording(2)) as replay:
        replay.lie = lambda handler: send(handler, 200, json.dumps(ANSWER).encode())
        yield replay


@pytest.fixture
def compare(api, unleash, shop):
    def compare(who="admin", **remote):
        state = {"address": unleash.address, "token": "*:production.0123456789abcdef"} | remote
        return api[who].post(
            API,
            {
                "from": {"environment": "production", "remote": state},
                "to": {"environment": "production"},
                "contexts": {"explicit": [{"userId": "7"}, {"userId": "42"}]},
            },
        )

    return compare


def test_flags_there_are_compared_with_those_here(compare, unleash):
    live_flag("cart")
    live_flag("only-here")
    answer = compare().json()
    changed = {
        flag["name"]: {
            change: count for change, count in flag["counts"].items() if count and change != "unchanged"
        }
        for flag in answer["flags"]
    }
    assert changed == {"cart": {"offToOn": 1}, "new": {"onToOff": 2}, "only-here": {"offToOn": 2}}
    assert answer["notes"] == ["1 flag there of projects that are not compared, or not here."]
    assert unleash.asked == [("GET", "/api/client/features")]


def test_only_admins_may_ask(compare, unleash):
    for who in ("editor", "viewer"):
        refused(compare(who), 403, "NoAccessError")
    assert unleash.asked == []


@pytest.mark.parametrize(
    ("remote", "message"),
    [
        ({"address": "ftp://a.example"}, "is not an address like"),
        ({"address": "http://127.0.0.2:1"}, "Connection refused"),
        ({"address": "https://a..example"}, "is not a valid host name"),
        ({"token": "ü"}, "in ASCII"),
    ],
)
def test_what_cannot_be_read_is_named(remote, message, compare):
    details = refused(compare(**remote), 400, "ValidationError")["details"]
    assert details[0]["path"] == "from.remote"
    assert message in details[0]["message"]


def test_addresses_are_checked_as_those_of_integrations(compare, settings, unleash):
    settings.INTEGRATION_NETWORKS = []
    [problem] = refused(compare(), 400, "ValidationError")["details"]
    assert (
        "127.0.0.1 is a private address. Allow it with FLAGADMIN_INTEGRATION_NETWORKS." in problem["message"]
    )
    assert unleash.asked == []


def test_redirects_and_failures_are_named(compare, unleash):
    unleash.lie = lambda handler: send(handler, 302, b"", Location="http://169.254.169.254/")
    [problem] = refused(compare(), 400, "ValidationError")["details"]
    assert "Redirects are not followed." in problem["message"]
    unleash.lie = lambda handler: send(handler, 500, b"{}")
    [problem] = refused(compare(), 400, "ValidationError")["details"]
    assert problem["message"].endswith("status 500.")

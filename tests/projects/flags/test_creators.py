"""GET /api/admin/flag-creators and /projects/:projectId/flag-creators."""

import pytest

from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import refused

ALL = "/api/admin/flag-creators"
SHOP = "/api/admin/projects/shop/flag-creators"


@pytest.fixture(autouse=True)
def flags(people):
    people["member"].name = "Mem Ber"
    people["member"].save()
    make_flag("first", created_by=people["owner"])
    make_flag("second", created_by=people["owner"])
    make_flag("gone", created_by=people["member"], archived=True)
    make_flag("by-token")
    make_flag("elsewhere", "default", created_by=people["editor"])


def test_everybody_is_listed_once(api, people):
    assert api["reader"].get(SHOP).json() == [
        {"id": people["member"].pk, "name": "Mem Ber"},
        {"id": people["owner"].pk, "name": "owner"},
    ]


def test_creators_of_all_flags_that_can_be_read(api):
    def listed(caller, query=""):
        return [creator["name"] for creator in api[caller].get(ALL + query).json()]

    assert listed("viewer") == ["editor", "Mem Ber", "owner"]
    assert listed("viewer", "?limit=1") == ["editor"]
    assert listed("viewer", "?limit=10000") == ["editor", "Mem Ber", "owner"]
    assert listed("reader") == ["Mem Ber", "owner"]
    assert listed("outsider") == []


@for_each("limit", ["0", "10001", "x"])
def test_a_limit_is_a_number(api, limit):
    [problem] = refused(api["viewer"].get(f"{ALL}?limit={limit}"), 400, "ValidationError")["details"]
    assert problem["path"] == "limit"


def test_a_project_that_cannot_be_read_is_not_found(api):
    refused(api["outsider"].get(SHOP), 404, "NotFoundError")
    refused(api["admin"].get(SHOP.replace("shop", "nope")), 404, "NotFoundError")

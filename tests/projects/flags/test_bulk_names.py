"""Changes of several flags refuse names that they cannot change, and then change nothing."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from projects.models import Flag
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import refused

SHOP = "/api/admin/projects/shop"
ON = f"{SHOP}/bulk_features/environments/development"
TAGS = {"tags": {"addedTags": [{"type": "simple", "value": "new"}], "removedTags": []}}
OF_ACTIVE = {
    "stale": ("POST", f"{SHOP}/stale", {"stale": True}),
    "on": ("POST", f"{ON}/on", {}),
    "off": ("POST", f"{ON}/off", {}),
    "tags": ("PUT", f"{SHOP}/tags", TAGS),
}
ALL = OF_ACTIVE | {
    "archive": ("POST", f"{SHOP}/archive", {}),
    "revive": ("POST", f"{SHOP}/revive", {}),
    "delete": ("POST", f"{SHOP}/delete", {}),
}


@pytest.fixture
def flags(shop):
    make_flag("active")
    make_flag("gone", archived=True)
    make_flag("far", make_project("other"))


def refuse(api, operation, *names):
    method, path, body = ALL[operation]
    call = api["admin"].put if method == "PUT" else api["admin"].post
    before = AuditEvent.objects.count()
    record = refused(
        call(path, body | {"features": list(names)}, format="json"), 403, "InvalidOperationError"
    )
    assert AuditEvent.objects.count() == before
    return record


@for_each("operation", ALL)
def test_unknown_names_are_refused(api, flags, operation):
    known = "gone" if operation in ("revive", "delete") else "active"
    record = refuse(api, operation, known, "nope", "far")
    assert record["message"] == "far, nope are not in project shop."
    assert record["details"] == [
        {"path": "far", "message": "it is in project other"},
        {"path": "nope", "message": "there is no such flag"},
    ]


@for_each("operation", OF_ACTIVE)
def test_archived_flags_are_refused(api, flags, operation):
    record = refuse(api, operation, "active", "gone")
    assert record["message"] == "gone is archived. Revive it first."
    assert record["details"] == [{"path": "gone", "message": "it is archived"}]


def test_active_flags_are_not_deleted(api, flags):
    assert refuse(api, "delete", "active", "gone")["message"] == "active is still active. Archive it first."
    refused(api["admin"].delete("/api/admin/archive/active"), 403, "InvalidOperationError")
    assert set(Flag.objects.values_list("name", flat=True)) == {"active", "gone", "far"}

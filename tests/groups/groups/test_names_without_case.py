"""Group names are unique without case, as user names are."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from tests.support.cast import make_group
from tests.support.records import refused
from tests.support.scim import GROUP, GROUPS, Provider

pytestmark = pytest.mark.django_db


def test_a_name_in_another_case_is_taken(api):
    make_group("Gx")
    record = refused(api["admin"].post("/api/admin/groups", {"name": "gX"}), 409, "NameExistsError")
    assert record["message"] == "A group named Gx already exists."
    Provider().send("post", GROUPS, {"schemas": [GROUP], "displayName": "GX"}, status=409)


def test_a_group_may_change_the_case_of_its_name_but_not_to_that_of_another(api):
    one, other = make_group("Gx"), make_group("other")
    path = "/api/admin/groups/{}"
    assert api["admin"].put(path.format(one.pk), {"name": "GX"}).status_code == 200
    refused(api["admin"].put(path.format(other.pk), {"name": "gx"}), 409, "NameExistsError")


def test_existing_pairs_are_named_at_the_upgrade_and_can_still_be_edited(api, caplog):
    one, _ = make_group("Gx"), make_group("gX")
    import_module("groups.migrations.0014_name_groups_that_differ_by_case").name_them(
        apps, connection.schema_editor()
    )
    assert "differ by case only: Gx, gX." in caplog.text
    body = {"name": "Gx", "description": "ours"}
    assert api["admin"].put(f"/api/admin/groups/{one.pk}", body).status_code == 200

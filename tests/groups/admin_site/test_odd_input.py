"""Malformed forms and URLs of the admin site get a readable error quickly, never a server error."""

import pytest

from groups.models import Group, GroupMembership
from tests.support.admin_forms import filled, site

__all__ = ["site"]

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]

LISTS = (
    "groups/group",
    "groups/user",
    "projects/project",
    "projects/flag",
    "projects/segment",
    "projects/strategy",
)


@pytest.fixture
def quiet(site):
    site.raise_request_exception = False
    return site


@pytest.mark.parametrize("selected", ["null", "", "1.5", "9" * 30])
def test_a_bulk_deletion_of_invalid_ids_is_no_server_error(quiet, shop, selected):
    form = {"action": "delete_selected", "_selected_action": selected, "post": "yes"}
    statuses = {address: quiet.post(f"/admin/{address}/", form).status_code for address in LISTS}

    assert max(statuses.values()) < 500, statuses


TO_FIELD = ("_to_field=", "_to_field=null", "_to_field=id", "_popup=1&_to_field=", "_changelist_filters=%01")


@pytest.mark.parametrize("query", TO_FIELD)
def test_an_odd_to_field_is_no_server_error(quiet, people, shop, query):
    objects = ("projects/project/shop", f"groups/user/{people['member'].pk}")
    addresses = [
        f"/admin/{row}/{verb}/?{query}" for row in objects for verb in ("change", "delete", "history")
    ]
    addresses += [f"/admin/{address}/?{query}" for address in (*LISTS, "projects/project/add")]
    statuses = {address: quiet.get(address).status_code for address in addresses}

    assert max(statuses.values()) < 500, statuses


@pytest.mark.parametrize("verb", ["add", "shop/change", "shop/delete"])
def test_an_odd_to_field_in_a_form_is_no_server_error(quiet, shop, verb):
    assert (
        quiet.post(
            f"/admin/projects/project/{verb}/", {"_to_field": "", "_popup": "1", "post": "yes"}
        ).status_code
        < 500
    )


def test_a_form_cannot_ask_for_thousands_of_rows(site, people, django_assert_max_num_queries):
    group = Group.objects.create(name="Team")
    GroupMembership.objects.create(group=group, user=people["member"])
    url = f"/admin/groups/group/{group.pk}/change/"
    form = filled(site, url)
    [total] = [name for name in form if name.endswith("TOTAL_FORMS")]
    with django_assert_max_num_queries(60):
        page = site.post(url, form | {total: "2000"})

    assert page.status_code == 200
    assert len(page.context["inline_admin_formsets"][0].formset.forms) <= 60
    assert "Please submit at most" in page.text

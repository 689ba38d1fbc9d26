"""An id that nothing can have is unknown, and the message says what kind of thing is not found."""

import pytest

from tests.support.records import refused

ADDRESSES = {
    "/api/admin/addons/{}": "Integration",
    "/api/admin/groups/{}": "Group",
    "/api/admin/playground/contexts/{}": "Saved context",
    "/api/admin/projects/shop/change-requests/{}": "Change request",
    "/api/admin/roles/{}": "Role",
    "/api/admin/segments/{}": "Segment",
    "/api/admin/service-account/{}": "Service account",
    "/api/admin/signals/{}": "Source",
    "/api/admin/user-admin/{}": "Person",
}


@pytest.mark.parametrize("number", ["0", "9" * 40])
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_id_out_of_range_is_not_found_by_its_kind(address, number, shop, api):
    record = refused(api["admin"].get(address.format(number)), 404, "NotFoundError")
    assert record["message"] == f"{ADDRESSES[address]} with id {number} not found."

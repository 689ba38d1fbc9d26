"""Form data that a browser would not send gets a readable error, never a server error."""

from urllib.parse import urlencode

import pytest
from django.db import transaction

from projects.models import Segment
from tests.support.flags import add_strategy, make_flag

pytestmark = pytest.mark.exhaustive

FLAG = "/projects/shop/features/cart"
ODD = ["a\x00b", "\ud800", "9" * 30, "-1", "²", "' OR 1=1", "<script>", "x" * 5000]


@pytest.fixture
def strategy(shop):
    Segment.objects.create(name="vip")
    make_flag("base")
    return add_strategy(make_flag("cart"), "production")


@pytest.fixture
def admin(browse):
    """It gets the page that people get for a fault, so that all faults are named."""
    admin = browse("admin")
    admin.raise_request_exception = False
    return admin


def post(browser, address, given):
    body = urlencode(given, errors="surrogatepass")
    return browser.post(address, body, content_type="application/x-www-form-urlencoded").status_code


def forms_with(text, strategy, segment):
    """Every form's address, with what is sent."""
    edit = f"{FLAG}/strategies/edit?environmentId=production&strategyId={strategy.pk}"
    rows = {
        "c": text, "v": text, "name": "flexibleRollout", "title": text, "segment": text, "p-rollout": text,
        "p-groupId": text, "c-0-field": text, "c-0-operator": text,
    }  # fmt: skip
    row = {"c": "0", "c-0-field": text, "c-0-operator": "STR_CONTAINS", "c-0-values": text, "c-0-was": text}
    variant = {"v": "0", "v-0-name": text, "v-0-payload": text, "v-0-payload-type": text, "v-0-was": text}
    share = {"v": "0", "v-0-name": "a", "v-0-fixed": "on", "v-0-percent": text, "variants-stickiness": text}
    return [
        (edit, rows), (edit, row), (edit, variant), (edit, share), (edit, {"do": text}), (edit, {"next": text}),
        (f"{FLAG}/strategies/new?environmentId=production", {"name": text}),
        (f"{FLAG}/variants?environmentId=production", variant),
        (f"{FLAG}/variants?environmentId=production", {"v": "0", "do": text}),
        (f"/segments/{segment.pk}/", {"name": text, "project": text}),
        ("/segments/new", row | {"name": text}),
        (f"{FLAG}/tags", {"type": text, "value": text}),
        (f"{FLAG}/tags", {"type": "simple", "value": text}),
        (f"{FLAG}/parents", {"feature": text}),
        (f"{FLAG}/parents", {"feature": "base", "variants": text}),
        (f"{FLAG}/links", {"url": text, "title": text}),
        (f"{FLAG}/links", {"url": "https://a.example/", "title": text}),
        (f"{FLAG}/links", {"do": "remove", "id": text}),
        (f"{FLAG}/order", {"environment": text, "order": text}),
        (f"{FLAG}/order", {"environment": "production", "order": text}),
        (f"{FLAG}/clone", {"new_name": text}),
        (f"{FLAG}/move", {"project": text}),
        (f"{FLAG}/revert", {"event": text, "part": text}),
        (f"{FLAG}/switch", {"environment": text, "enabled": "on"}),
        (f"{FLAG}/edit", {"type": text, "description": text}),
        ("/projects/shop/features/new", {"name": text, "type": "release", "tags": text}),
        ("/projects/shop/features/archive", {"name": text}),
        ("/projects/shop/features/delete", {"name": text}),
        ("/projects/shop/features/revive", {"name": text}),
        ("/projects/shop/environments", {"environment": text}),
        ("/projects/shop/settings/", {"name": text, "default_stickiness": text, "naming_pattern": text}),
        ("/projects/new/", {"name": text, "id": text, "environments": text}),
        ("/context-fields/new", {"name": text, "legal_values": text, "sort_order": text}),
    ]  # fmt: skip


def test_odd_texts_in_forms(admin, strategy):
    segment = Segment.objects.get()
    sent = [each for odd in ODD for each in forms_with(odd, strategy, segment)]
    faults = [(address, given) for address, given in sent if failed(admin, address, given)]
    assert not faults, faults


def failed(browser, address, given):
    with transaction.atomic():
        status = post(browser, address, given)
        transaction.set_rollback(True)
    return status >= 500


ADDRESSES = [
    "/projects/?q={}", "/projects/?sort={}&page={}&show={}", "/projects/shop/?q={}&tag={}&type={}&state={}",
    "/projects/{}/", "/projects/shop/features/{}/", "/segments/{}/",
    "/projects/shop/features/archive?name={}", "/projects/shop/export?environment={}",
    FLAG + "/strategies/edit?environmentId={}&strategyId={}", FLAG + "/strategies/new?environmentId={}",
    FLAG + "/strategies/new?environmentId=production&name={}", FLAG + "/variants?environmentId={}",
    "/segments/?q={}", "/segments/new?project={}", "/context-fields/{}/", "/context-fields/?q={}",
]  # fmt: skip
ODD_IN_ADDRESSES = ["a%00b", "%ED%A0%80", "9" * 30, "%27%22", "%F0%9F"]


def test_odd_texts_in_addresses(admin, strategy):
    asked = ["/projects/shop/?tag=simple"]
    asked += [address.replace("{}", odd) for address in ADDRESSES for odd in ODD_IN_ADDRESSES]
    faults = [address for address in asked if admin.get(address).status_code >= 500]
    assert not faults, faults

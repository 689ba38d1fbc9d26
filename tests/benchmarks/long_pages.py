"""Every page over an installation with a lot of everything: those above 300 kB or 60 statements are told.

Run by name: pytest tests/benchmarks/long_pages.py
"""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from groups.permissions import BuiltIn
from tests.benchmarks.long_data import FULL, make_long_data
from tests.browser.pages import PAGES, filled, meant_status
from tests.support.cast import make_user

BYTES, STATEMENTS = 300_000, 60
FLAG = f"/projects/checkout/features/{FULL}"
MORE_PAGES = [
    "/projects/checkout/?show=archived",
    "/projects/checkout/delete/",
    "/projects/checkout/settings/",
    "/projects/checkout/features/archive?all=yes",
    "/access/roles/2/",
    "/access/roles/4/",
    f"{FLAG}/",
    f"{FLAG}/?environment=production",
    f"{FLAG}/edit",
    f"{FLAG}/switch?environment=production&enabled=off",
    f"/projects/checkout/features/archive?name={FULL}",
    f"/playground/flag/{FULL}/?environment=production",
]


def test_no_page_grows_with_the_data(db):
    visitor = make_user("admin", root_role=BuiltIn.ADMIN)
    make_long_data()
    browser = Client()
    browser.force_login(visitor)
    faults = []
    for address in [*map(filled, PAGES), *MORE_PAGES]:
        with CaptureQueriesContext(connection) as statements:
            page = browser.get(address)
        assert page.status_code == meant_status(address), address
        if len(page.content) > BYTES or len(statements) > STATEMENTS:
            faults.append(f"{len(page.content)} bytes, {len(statements)} statements: {address}")
    assert not faults, "\n".join(faults)

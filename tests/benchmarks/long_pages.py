"""Every page over an installation with a lot of everything: those above 300 kB or 60 statements are told.

Run by name: pytest -s tests/benchmarks/long_pages.py. It prints each page as it answers.
"""

import sys
import time

from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from groups.permissions import BuiltIn
from projects.models import Flag
from tests.benchmarks.long_data import FULL, make_long_data
from tests.browser.pages import PAGES, filled, meant_status
from tests.support.cast import make_user

admin.autodiscover()

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


def raw_records() -> list[str]:
    """The admin site: every list, and of every model the form of the longest row there is."""
    pages = []
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        pages.append(reverse(f"{name}_changelist"))
        size = f"SELECT t.ctid FROM {model._meta.db_table} t ORDER BY pg_column_size(t) DESC LIMIT 1"
        longest = model._base_manager.extra(where=[f"{model._meta.db_table}.ctid = ({size})"]).first()
        if longest is not None:
            pages.append(reverse(f"{name}_change", args=(longest.pk,)))
    return [*pages, reverse("admin:projects_flag_change", args=(Flag.objects.get(name=FULL).pk,))]


def test_no_page_grows_with_the_data(db):
    visitor = make_user("admin", root_role=BuiltIn.ADMIN)
    make_long_data()
    with connection.cursor() as cursor:
        # The rows are of this transaction, which nobody else can see and gather statistics of.
        cursor.execute("ANALYZE")
    browser = Client()
    browser.force_login(visitor)
    faults = []
    for address in [*map(filled, PAGES), *MORE_PAGES, *raw_records()]:
        started = time.process_time(), time.perf_counter()
        with CaptureQueriesContext(connection) as statements:
            page = browser.get(address)
        cpu, wall = time.process_time() - started[0], time.perf_counter() - started[1]
        sys.stdout.write(
            f"{len(page.content):9,} bytes {len(statements):3} statements"
            f" {cpu * 1e3:6.0f} ms CPU {wall * 1e3:6.0f} ms: {address[:200]}\n"
        )
        sys.stdout.flush()
        if page.status_code != meant_status(address):
            faults.append(f"{page.status_code}: {address}")
        if len(page.content) > BYTES or len(statements) > STATEMENTS:
            faults.append(f"{len(page.content)} bytes, {len(statements)} statements: {address}")
    assert not faults, "\n".join(faults)

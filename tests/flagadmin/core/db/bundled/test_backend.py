"""Django's database backend for the bundled PostgreSQL server."""

import pytest
from django.db import connection

from tests.support.paths import ROOT


@pytest.mark.django_db
def test_orders_text_by_code_point_and_folds_case_beyond_ascii() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(name ORDER BY name), lower('ÄÖ') FROM (VALUES ('a'), ('B'), ('é')) t(name)"
        )
        assert cursor.fetchone() == (["B", "a", "é"], "äö")


@pytest.mark.django_db
def test_listens_on_no_port() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW listen_addresses")
        assert cursor.fetchone() == ("",)
    assert (ROOT / ".flagadmin" / "test" / "postgres").is_dir()

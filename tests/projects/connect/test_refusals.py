"""What SDKs were refused: bounded in memory and in the database, and never a secret."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from flagadmin.core.errors import AuthenticationRequired
from projects.connect.queries import KEPT, MAX_NOTED, MAX_ROWS, Refusals, refusals
from projects.models import RefusedRequest
from tests.support.cast import client
from tests.support.for_each import for_each

pytestmark = pytest.mark.django_db

SECRET = "shop:production.0123456789abcdef0123456789abcdef"


def request(address="10.0.4.17", **headers):
    return SimpleNamespace(headers=headers, META={"REMOTE_ADDR": address})


@pytest.fixture(autouse=True)
def _empty():
    refusals.flush()
    RefusedRequest.objects.all().delete()


@for_each(
    "path",
    [
        "/api/client/features",
        "/api/client/delta",
        "/api/client/streaming",
        "/api/frontend",
        "/ofrep/v1/evaluate/flags",
    ],
)
def test_every_endpoint_of_sdks_notes_what_it_refuses(path):
    with_token = client(SECRET)
    answer = with_token.post(path, {}, format="json") if "ofrep" in path else with_token.get(path)
    refusals.flush()

    assert answer.status_code == 401
    [row] = RefusedRequest.objects.all()
    assert (row.message, row.project, row.environment, row.ending) == (
        "API token not found.", "shop", "production", "cdef",
    )  # fmt: skip


def test_nothing_of_the_secret_is_stored_but_its_ending():
    noted = Refusals()
    for secret in (SECRET, "hunter2", "user:" + SECRET[16:], "x" * 5000, "päss\n" * 9):
        noted.note(request(), secret, AuthenticationRequired())
    noted.flush()

    stored = "".join(str(list(row)) for row in RefusedRequest.objects.values_list())
    assert "0123456789" not in stored
    assert "hunter2" not in stored


def test_the_same_request_is_one_row_until_it_is_old(django_assert_num_queries):
    noted = Refusals()
    for _ in range(3):
        noted.note(request(), SECRET, AuthenticationRequired())
        noted.flush()
    assert RefusedRequest.objects.count() == 1

    RefusedRequest.objects.update(seen_at=timezone.now() - KEPT - timedelta(seconds=1))
    noted.note(request(), None, AuthenticationRequired())
    noted.flush()
    assert RefusedRequest.objects.get().ending == ""

    with django_assert_num_queries(0):
        Refusals().flush()


def test_memory_is_bounded():
    noted = Refusals()
    for number in range(10 * MAX_NOTED):
        noted.note(request(f"10.0.0.{number}"), SECRET, AuthenticationRequired())
    noted.flush()
    assert RefusedRequest.objects.count() == MAX_NOTED


def test_rows_are_bounded():
    noted = Refusals()
    for start in range(0, MAX_ROWS + 2 * MAX_NOTED, MAX_NOTED):
        for number in range(start, start + MAX_NOTED):
            noted.note(request(f"address {number}"), SECRET, AuthenticationRequired())
        noted.flush()
    assert RefusedRequest.objects.count() == MAX_ROWS
    assert RefusedRequest.objects.order_by("-seen_at")[0].address == f"address {MAX_ROWS + 2 * MAX_NOTED - 1}"

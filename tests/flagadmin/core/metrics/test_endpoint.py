"""/metrics, and what it tells about requests."""

from collections.abc import Callable

import pytest
from django.test import Client

from flagadmin import __version__
from tests.support.metrics import Values, values_of
from tests.support.sdk import Sdk

TOKEN = "a-token-for-prometheus"
SENT = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.django_db
def test_without_a_setting_there_is_no_such_page(client: Client) -> None:
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", TOKEN, f"Bearer {TOKEN}x", "Bearer ü"])
@pytest.mark.usefixtures("counted")
def test_only_its_token_reads_it(header: str, client: Client) -> None:
    answer = client.get("/metrics", headers={"Authorization": header})
    assert (answer.status_code, answer["WWW-Authenticate"], answer.content) == (401, "Bearer", b"")


@pytest.mark.django_db
def test_it_tells_what_was_counted(
    client: Client, counted: Callable[[], Values], django_assert_num_queries
) -> None:
    client.get("/healthz")
    with django_assert_num_queries(0):
        answer = client.get("/metrics", headers=SENT)
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'flagadmin_requests_total{method="GET",route="healthz",status="200"}' in values_of(
        answer.content.decode()
    )
    values = counted()
    assert values['flagadmin_requests_total{method="GET",route="healthz",status="200"}'] == 1
    assert values['flagadmin_request_seconds_count{route="healthz"}'] == 1
    assert values['flagadmin_resident_memory_bytes{process="main-1"}'] > 1_000_000
    assert any(
        name.startswith("flagadmin_build_info{") and f'version="{__version__}"' in name for name in values
    )


def test_requests_are_counted_by_route(sdk: Sdk, client: Client, counted: Callable[[], Values]) -> None:
    for name in ("a", "b"):
        assert sdk.features(f"/{name}").status_code == 404
    client.get("/api/unknown/1")
    client.get("/unknown/2")
    client.generic("BREW", "/login/")
    requests = {name: value for name, value in counted().items() if name.startswith("flagadmin_requests")}
    assert requests == {
        'flagadmin_requests_total{method="GET",route="api/client/features/<str:name>",status="404"}': 2,
        'flagadmin_requests_total{method="GET",route="^api(/.*)?$",status="401"}': 1,
        'flagadmin_requests_total{method="GET",route="none",status="404"}': 1,
        'flagadmin_requests_total{method="other",route="login/",status="405"}': 1,
    }

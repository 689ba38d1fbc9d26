"""Every error below /api/ is answered with an error record."""

import gzip

import pytest

from tests.support.cast import client, make_token
from tests.support.records import refused


def test_unknown_route_without_a_key(api):
    refused(api["nobody"].get("/api/admin/no-such-thing"), 401, "AuthenticationRequired")


def test_unknown_route_with_a_key(api):
    record = refused(api["admin"].get("/api/admin/no-such-thing"), 404, "NotFoundError")
    assert "/api/admin/no-such-thing" in record["message"]


@pytest.mark.parametrize(
    "header", ["nonsense", "Bearer nonsense", "Basic abc", "user:123", "*:*.0", "Bearer"]
)
def test_an_unknown_key_is_refused(db, header):
    refused(client(header).get("/api/admin/x"), 401, "AuthenticationRequired")


def test_bearer_scheme_in_any_case(people):
    secret = make_token("personal", user=people["viewer"])
    for header in (secret, f"Bearer {secret}", f"bearer {secret}"):
        refused(client(header).get("/api/admin/x"), 404, "NotFoundError")


def test_every_answer_has_the_headers(api):
    response = api["admin"].get("/api/admin/x", headers={"X-Request-Id": "trace-1234"})
    assert response["X-Request-Id"] == "trace-1234"
    assert response["Content-Security-Policy"].startswith("default-src 'self'")
    assert response["X-Content-Type-Options"] == "nosniff"


def test_an_unknown_host_name_says_where_the_known_ones_are(api, settings):
    settings.ALLOWED_HOSTS = ["flags.example"]
    record = refused(
        api["admin"].get("/api/admin/x", headers={"Host": "other.example"}), 400, "ValidationError"
    )
    assert "FLAGADMIN_ALLOWED_HOSTS" in record["message"]


def test_nul_in_the_address(api):
    refused(api["admin"].get("/api/admin/x?query=%00"), 400, "ValidationError")
    refused(api["admin"].get("/api/admin/x%00"), 400, "ValidationError")


def test_a_body_that_is_too_large_is_refused(api, settings):
    settings.BODY_LIMIT = 1000
    response = api["admin"].post("/api/admin/x", data=b"x" * 1001, content_type="application/json")
    refused(response, 413, "PayloadTooLargeError")


def test_inflated_size_counts(api, settings):
    settings.BODY_LIMIT = 1000
    bomb = gzip.compress(b" " * 100_000)
    response = api["admin"].post(
        "/api/admin/x", data=bomb, content_type="application/json", headers={"Content-Encoding": "gzip"}
    )
    refused(response, 413, "PayloadTooLargeError")


@pytest.mark.parametrize(
    "body",
    [gzip.compress(b'{"a": 1}')[:-6], gzip.compress(b'{"a": 1}') * 2, gzip.compress(b'{"a": 1}') + b"more"],
    ids=["too short", "two members", "something behind it"],
)
def test_a_broken_gzip_body_is_refused(api, body):
    response = api["admin"].post(
        "/api/admin/x", data=body, content_type="application/json", headers={"Content-Encoding": "gzip"}
    )
    record = refused(response, 400, "ValidationError")
    assert "gzip" in record["message"]


def test_of_many_problems_the_first_are_listed(api):
    record = refused(
        api["admin"].post("/api/admin/projects/shop/archive", {"features": [[]] * 1000}),
        400,
        "ValidationError",
    )
    assert record["message"] == "The request has 1,000 problems. The first 100 are listed in details."
    assert len(record["details"]) == 101
    assert record["details"][-1] == {"path": "", "message": "and 900 more"}


def test_a_record_stays_below_100_kb(api):
    long = {"\U0001f600" * 9_000: 1}
    sent = [{"op": "add", "path": "/0", "value": long}] * 20
    response = api["admin"].post("/api/admin/playground", {"environment": ["x" * 100_000], "projects": sent})
    assert response.status_code == 400
    assert len(response.content) < 100_000


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        (b"[" + b"{}," * 100_000 + b"{}]", "", "must have at most 10,000 items, not 100,001"),
        (b'{"a":[1,' + b"[" * 40 + b"]" * 40 + b"]}", None, "nested at most"),
        (b'{"a":{"b":[' + b"1," * 20_000 + b"1]}}", "a.b", "at most 10,000 items"),
        (b'{"a":[' + b",".join([b"[" + b"1," * 9_999 + b"1]"] * 30) + b"]}", None, "at most 200,000 values"),
    ],
    ids=["long", "deep", "inner", "values"],
)
def test_a_body_is_bounded_before_anybody_looks_into_it(api, body, path, message):
    response = api["admin"].post("/api/admin/playground", data=body, content_type="application/json")
    record = refused(response, 400, "ValidationError")
    assert message in record["message"]
    if path:
        assert record["details"][0]["path"] == path


@pytest.mark.parametrize(
    "body", [b"[" + b"{}," * 200_001 + b"{}]", b"[" * 9 + b"1," * 200_000 + b"1" + b"]" * 9]
)
def test_too_many_values_are_refused_before_they_are_made(api, body, monkeypatch):
    monkeypatch.setattr(
        "flagadmin.core.http.json_bodies.parse_json", lambda body: pytest.fail("it was parsed")
    )
    record = refused(
        api["admin"].post("/api/admin/playground", data=body, content_type="application/json"),
        400,
        "ValidationError",
    )
    assert "at most 200,000 values" in record["message"]


def test_commas_in_a_string_are_not_values(api):
    context = {"properties": {"list": ',",\\' * 150_000}}
    body = {"environment": "production", "projects": [], "context": context}
    assert "at most 200,000 values" not in api["admin"].post("/api/admin/playground", body).text

"""POST /edge/validate tells an edge proxy which of its tokens are valid, and for what."""

import pytest

from tests.support.cast import client, make_token

pytestmark = pytest.mark.django_db


def validate(*tokens: str):
    return client().post("/edge/validate", {"tokens": list(tokens)})


def test_valid_keys_say_what_they_reach(shop) -> None:
    backend = make_token("backend", projects=["shop", "default"], environment="development")
    frontend = make_token("frontend", environment="production")
    admin = make_token("admin")
    answer = validate(frontend, "nope", backend, admin, backend)
    assert answer.status_code == 200
    assert answer.json()["tokens"] == [
        {"token": frontend, "type": "frontend", "projects": ["*"], "environment": "production"},
        {"token": backend, "type": "client", "projects": ["default", "shop"], "environment": "development"},
        {"token": admin, "type": "admin", "projects": ["*"], "environment": "*"},
    ]


def test_expired_and_personal_keys_are_not_valid_there(people) -> None:
    expired = make_token("backend", environment="development", expires_at="2020-01-01T00:00:00Z")
    personal = make_token("personal", user=people["admin"])
    assert validate(expired, personal).json() == {"tokens": []}


def test_the_number_of_statements_does_not_grow(db: None, django_assert_num_queries) -> None:
    tokens = [make_token("backend", projects=["default"], environment="development") for _ in range(5)]
    with django_assert_num_queries(2):
        assert len(validate(*tokens).json()["tokens"]) == 5


@pytest.mark.parametrize("body", [{}, {"tokens": "x"}, {"tokens": [{}]}, []])
def test_a_malformed_body_is_refused(db: None, body: object) -> None:
    answer = client().post("/edge/validate", body)
    assert (answer.status_code, answer.json()["name"]) == (400, "ValidationError")

"""Answers from memory during an outage: only what is known, not for too long, never for a revoked token."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from flagadmin.core.db import outages
from flagadmin.core.db.outages import reach, read
from flagadmin.core.errors import AuthenticationRequired, ServiceUnavailable
from groups.models import ApiToken
from groups.tokens import find_token, sdk_tokens
from sdk.watcher import watcher as scopes
from sdk.watcher.state import State, TokenState
from sdk.watcher.watcher import Watcher
from tests.support.cast import make_token


@pytest.fixture(autouse=True)
def _own_reach() -> Iterator[None]:
    outages.begin_request()
    yield
    outages.begin_request()
    reach.forget()
    sdk_tokens.clear()


def fails() -> str:
    raise OperationalError("no connection")


def test_the_database_is_read_while_it_can_be_reached() -> None:
    reach.note_reached()
    assert read(lambda: "stored", lambda: "known") == "stored"
    assert not outages.is_from_memory()
    assert outages.get_cache_status() is None


def test_what_is_known_is_the_answer_when_it_fails() -> None:
    reach.note_reached()
    assert read(fails, lambda: "known") == "known"
    assert outages.is_from_memory()
    assert (outages.get_cache_status() or "").startswith("flagadmin; hit; ttl=-")


def test_nothing_is_tried_once_it_is_lost() -> None:
    reach.note_reached()
    reach.note_lost()
    assert read(lambda: "stored", lambda: "known") == "known"
    assert read(lambda: "replicated", lambda: "known", using="replica") == "replicated"


@pytest.mark.parametrize("lost", [False, True])
def test_what_is_not_known_is_refused(lost: bool) -> None:
    reach.note_reached()
    reach.is_lost = lost
    with pytest.raises(ServiceUnavailable if lost else OperationalError):
        read(fails, lambda: None)


def test_nothing_is_known_for_too_long(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.SERVE_STALE_SECONDS = 300
    for seconds, age in ((299, 299), (301, None)):
        monkeypatch.setattr(reach, "_reached_at", time.monotonic() - seconds)
        found = reach.get_age()
        assert found is None if age is None else int(found or 0) >= age
    with pytest.raises(OperationalError):
        read(fails, lambda: "known")


def test_nothing_is_known_where_nobody_watches() -> None:
    with pytest.raises(OperationalError):
        read(fails, lambda: "known")


def token(secret_hash: str = "a") -> ApiToken:
    return ApiToken(
        pk=7, kind="backend", environment_id="development", secret_hash=secret_hash, all_projects=True
    )


def watching(monkeypatch: pytest.MonkeyPatch, tokens: dict[int, TokenState | None]) -> None:
    watcher = Watcher()
    watcher._state = State({"default": 4}, tokens)
    monkeypatch.setattr(scopes, "watcher", watcher)
    reach.note_reached()
    reach.note_lost()


def test_a_tokens_scope_is_the_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    watching(monkeypatch, {7: TokenState("backend", "development", True, "a", None, ())})
    assert scopes.token_scope(token(), using="default").revisions == {"default": 4}


@pytest.mark.parametrize("watched", [None, TokenState("backend", "development", True, "b", None, ())])
def test_a_token_that_was_seen_to_be_revoked_is_refused(
    monkeypatch: pytest.MonkeyPatch, watched: TokenState | None
) -> None:
    watching(monkeypatch, {7: watched})
    with pytest.raises(AuthenticationRequired):
        scopes.token_scope(token(), using="default")


def test_a_token_that_the_watcher_has_not_seen_is_refused_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    watching(monkeypatch, {})
    with pytest.raises(ServiceUnavailable):
        scopes.token_scope(token(), using="default")


@pytest.mark.django_db
def test_sdk_tokens_are_known_until_they_are_found_to_be_revoked() -> None:
    sdk, admin = make_token("backend", environment="development"), make_token("admin")
    for secret in (sdk, admin):
        find_token(secret, now=timezone.now())
    backend, others = ApiToken.objects.get(kind="backend").pk, ApiToken.objects.get(kind="admin").pk
    known = [token.pk for token in sdk_tokens.values()]  # beside those of tests before this one
    assert backend in known
    assert others not in known
    reach.note_reached()
    reach.note_lost()
    assert find_token(sdk, now=timezone.now()).kind == "backend"
    with pytest.raises(ServiceUnavailable):
        find_token(admin, now=timezone.now())
    reach.note_reached()
    ApiToken.objects.all().delete()
    with pytest.raises(AuthenticationRequired):
        find_token(sdk, now=timezone.now())
    assert backend not in [token.pk for token in sdk_tokens.values()]

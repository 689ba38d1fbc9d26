"""Polls answered in the event loop: as Django answers them, and only while that is certain."""

import gc
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from flagadmin import rsgi
from flagadmin.core.server.loop_routes import Ready
from groups.models import ApiToken, ApiTokenProject
from projects.models import Flag
from sdk import poll_shortcuts
from sdk.delta.states import TRUSTED
from sdk.features.api import cache, is_older
from tests.support.event_loop import Pairs, Protocol, in_thread, scope
from tests.support.polling import DELTA, FEATURES, HOST, SPEC, Server, comparable, in_server, with_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("polling_routes")]


def test_each_request_has_its_own_id(polled_secret: str) -> None:
    async def work(server: Server) -> list[str]:
        headers = (HOST, ("Authorization", polled_secret), SPEC)
        await server.warm_up(*headers)
        given = [("X-Request-Id", "trace-12345")], [("X-Request-Id", "no good")], []
        return [dict((await server.ask(FEATURES, *headers, *ids))[1])["X-Request-Id"] for ids in given]

    own, *made = with_server(work)
    assert own == "trace-12345"
    assert len({*made, "no good"}) == 3


def test_the_access_log_has_them(polled_secret: str, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def work(server: Server) -> None:
        headers = (HOST, ("Authorization", polled_secret), SPEC)
        etag = await server.warm_up(*headers)
        settings.ACCESS_LOG = True
        await server.ask(FEATURES, *headers, ("If-None-Match", etag), ("X-Request-Id", "trace-12345"))

    caplog.set_level(logging.INFO, "flagadmin.access")
    with_server(work)
    [line] = [record.__dict__ for record in caplog.records if record.name == "flagadmin.access"]
    assert line.items() >= {"status": 304, "caller": "backend", "requestId": "trace-12345"}.items()
    assert line["route"] == FEATURES[1:]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda: ApiToken.objects.all().delete(), 401),
        (lambda: ApiToken.objects.update(expires_at=timezone.now()), 401),
        (lambda: ApiToken.objects.update(kind="frontend"), 403),
        (lambda: ApiToken.objects.update(environment_id="development"), 200),
        (lambda: ApiTokenProject.objects.all().delete(), 200),
        (lambda: Flag.objects.filter(name="a").update(stale=True), 200),
    ],
    ids=["revoked", "expired", "other kind", "other environment", "without projects", "flag changed"],
)
@in_server
async def test_what_has_changed_is_not_answered_from_memory(
    server: Server, polled_secret: str, change: Callable[[], Any], status: int
) -> None:
    headers = (HOST, ("Authorization", polled_secret), SPEC)
    etag = await server.warm_up(*headers)
    await server.changes(change)
    answer = await server.ask(FEATURES, *headers, ("If-None-Match", etag))
    assert (answer[0], server.from_memory) == (status, False)
    assert comparable(answer) == comparable(
        await server.ask_django(FEATURES, *headers, ("If-None-Match", etag))
    )


@in_server
async def test_deltas_without_changes_come_from_memory(
    server: Server, polled_secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = (HOST, ("Authorization", polled_secret))
    status, answered, _ = await server.ask(DELTA, *headers)
    assert (status, server.from_memory) == (200, False)
    etag = dict(answered)["ETag"]
    known = *headers, ("If-None-Match", etag)
    assert await server.warm_up(*known, path=DELTA) == etag
    answer = await server.ask(DELTA, *known)
    assert (answer[0], server.from_memory) == (304, True)
    assert comparable(answer) == comparable(await server.ask_django(DELTA, *known))

    for other in ((), (("If-None-Match", '"1"'),), (("If-None-Match", f"{etag}, {etag}"),)):
        answer = await server.ask(DELTA, *headers, *other)
        assert not server.from_memory
        assert comparable(answer) == comparable(await server.ask_django(DELTA, *headers, *other))

    await server.changes(lambda: Flag.objects.filter(name="a").update(stale=True))
    status, answered, _ = await server.ask(DELTA, *known)
    assert (status, server.from_memory) == (200, False)
    assert int(dict(answered)["ETag"].strip('"')) > int(etag.strip('"'))

    later = *headers, ("If-None-Match", dict(answered)["ETag"])
    await server.warm_up(*later, path=DELTA)
    much_later = SimpleNamespace(time=lambda: time.time() + TRUSTED)
    monkeypatch.setattr(poll_shortcuts, "time", much_later)
    assert (await server.ask(DELTA, *later))[0] == 304
    assert not server.from_memory  # the id is looked up again


def test_an_expired_token_is_refused_between_two_reads(
    polled_secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expires_at = timezone.now() + timedelta(hours=1)
    ApiToken.objects.update(expires_at=expires_at)

    async def work(server: Server) -> None:
        headers = (HOST, ("Authorization", polled_secret), SPEC)
        await server.warm_up(*headers)
        state = server.watcher._state
        monkeypatch.setattr(timezone, "now", lambda: expires_at)
        monkeypatch.setattr(poll_shortcuts, "time", SimpleNamespace(time=expires_at.timestamp))
        answer = await server.ask(FEATURES, *headers)
        assert (answer[0], server.from_memory) == (401, False)
        assert server.watcher._state is state

    with_server(work)


@in_server
async def test_a_change_of_another_project_keeps_the_answer(server: Server, polled_secret: str) -> None:
    headers = (HOST, ("Authorization", polled_secret), SPEC)
    await server.warm_up(*headers)
    await server.changes(lambda: Flag.objects.filter(name="b").update(stale=True))
    await server.ask(FEATURES, *headers)
    assert server.from_memory


def test_an_answer_is_not_kept_if_something_changed_meanwhile(polled_secret: str) -> None:
    """Before or after Django reads: what it answered is not replayed."""

    async def work(server: Server) -> None:
        headers = (HOST, ("Authorization", polled_secret), SPEC)
        await server.warm_up(*headers)
        for read_first in (True, False):
            server.shortcut._answers.clear()
            await server.be_certain()
            learn = server.shortcut.learn(scope("GET", FEATURES, headers))
            assert learn
            answered = await in_thread(lambda: django_answers(headers)) if read_first else None
            await server.changes(lambda stale=read_first: Flag.objects.update(stale=stale))
            learn(*(answered or await in_thread(lambda: django_answers(headers))))
            await server.be_certain()
            assert server.shortcut.answer(scope("GET", FEATURES, headers)) is None

    def django_answers(headers: Pairs) -> tuple[Ready, Any]:
        return rsgi._answer(rsgi.make_environ(scope("GET", FEATURES, headers), b""), Protocol())

    with_server(work)


@in_server
async def test_a_newer_etag_is_djangos(server: Server, polled_secret: str) -> None:
    """Another worker knew more: this one must not answer with what is older."""
    headers = (HOST, ("Authorization", polled_secret), SPEC)
    etag = await server.warm_up(*headers)
    revision = int(etag.split(":")[1])
    known = []
    for other in (revision - 1, revision + 1):
        for _ in range(2):
            await server.ask(FEATURES, *headers, ("If-None-Match", etag.replace(str(revision), str(other))))
        known.append(server.from_memory)
    assert known == [True, False]


@in_server
async def test_nothing_is_certain_without_the_watcher(server: Server, polled_secret: str) -> None:
    headers = (HOST, ("Authorization", polled_secret), SPEC)
    await server.warm_up(*headers)
    server.watcher._read_at = float("-inf")
    await server.ask(FEATURES, *headers, certain=False)
    assert not server.from_memory


@in_server
async def test_bodies_are_those_of_the_features_cache(server: Server, polled_secret: str) -> None:
    headers = (HOST, ("Authorization", polled_secret), SPEC)
    await server.warm_up(*headers)
    body = (await server.ask(FEATURES, *headers))[2]
    assert any(answer.get_bytes(gzipped=False) is body for _, answer in cache.entries())
    cache.clear()
    gc.collect()  # Django's responses refer to themselves
    await server.ask(FEATURES, *headers)
    assert not server.from_memory


def test_answers_are_bounded(polled_secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll_shortcuts.PollAnswers, "max_answers", 3)

    async def work(server: Server) -> int:
        headers = (HOST, ("Authorization", polled_secret), SPEC)
        await server.warm_up(*headers)
        for number in range(6):
            await server.ask(FEATURES, *headers, ("Accept-Encoding", f"gzip, x{number}"))
        return len(server.shortcut._answers)

    assert with_server(work) == 3


def test_which_etag_is_older() -> None:
    assert is_older('"00112233:5:v1"', '"00112233:6:v1"')
    assert is_older('W/"00112233:5:v1"', '"00112233:6:v1"')
    assert not is_older('"00112233:6:v1"', '"00112233:6:v1"')
    assert not is_older('"00112233:7:v1"', '"00112233:6:v1"')
    assert not is_older('"00112234:5:v1"', '"00112233:6:v1"')
    assert not is_older('"00112233:٥:v1"', '"00112233:6:v1"')
    assert not is_older("", '"00112233:6:v1"')

"""Polls answered in the event loop: as Django answers them, and only while that is certain."""

import asyncio
import gc
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from flagadmin.server import loop_routes, rsgi
from flagadmin.server.constant_answers import ConstantAnswers
from flagadmin.server.loop_routes import Ready
from groups.models import ApiToken, ApiTokenProject
from projects.client_api import ready_answers
from projects.client_api.features_cache import cache, is_older
from projects.client_api.ready_answers import FeaturesShortcut
from projects.models import Flag
from projects.watcher import watcher
from projects.watcher.watcher import Watcher
from tests.support import event_loop
from tests.support.cast import make_project, make_token
from tests.support.event_loop import Pairs, Protocol, in_thread, scope, until
from tests.support.flags import make_flag

pytestmark = pytest.mark.django_db(transaction=True)

FEATURES = "/api/client/features"
HOST = ("Host", "localhost")
ERROR_ID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}")
SPEC = ("Unleash-Client-Spec", "5.2.0")


class Server:
    """The RSGI application with a watcher, and whether it answered from memory."""

    def __init__(self) -> None:
        self.watcher = Watcher()
        self.shortcut = FeaturesShortcut(self.watcher)
        self.application = rsgi.Application()
        self.from_memory = False

    async def ask(
        self, path: str, *headers: tuple[str, str], method: str = "GET", scheme: str = "http"
    ) -> Any:
        request = scope(method, path, headers, scheme)
        shortcut = loop_routes.shortcuts.get(request.path)
        self.from_memory = bool(method == "GET" and shortcut and shortcut.answer(request))
        return await event_loop.ask(self.application, request)

    async def ask_django(self, *request: Any, **more: Any) -> Any:
        kept, loop_routes.shortcuts = loop_routes.shortcuts, {}
        try:
            return await self.ask(*request, **more)
        finally:
            loop_routes.shortcuts = kept

    async def warm_up(self, *headers: tuple[str, str], path: str = FEATURES) -> str:
        """Asks until the answer comes from memory. Returns its ETag."""
        async with asyncio.timeout(60):
            while True:
                _, answered, _ = await self.ask(path, *headers)
                if self.from_memory:
                    return dict(answered).get("ETag", "")
                await asyncio.sleep(0.01)

    async def changes(self, work: Callable[[], Any]) -> None:
        """Waits until the watcher has read the change."""
        before = self.watcher._state
        await in_thread(work)
        async with asyncio.timeout(60):
            await until(lambda: self.watcher._state is not before)


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    loop_routes.add_shortcut(FEATURES, server.shortcut)
    loop_routes.run_in_loop(server.watcher.run)
    server.application.__rsgi_init__(asyncio.get_running_loop())
    try:
        await until(lambda: server.watcher.state)
        yield server
    finally:
        server.application._stop()
        await asyncio.wait(server.application.tasks)
        server.application.threads.shutdown()


def with_server(work: Callable[[Server], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with serving() as server:
            return await work(server)

    return event_loop.run(run)


@pytest.fixture(autouse=True)
def routes(monkeypatch: pytest.MonkeyPatch) -> None:
    shortcuts = {"/healthz": ConstantAnswers()}
    for name, own in (("shortcuts", shortcuts), ("streams", {}), ("tasks", [])):
        monkeypatch.setattr(loop_routes, name, own)
    # A busy machine may keep the watcher waiting; what must not be certain, tests say themselves.
    monkeypatch.setattr(watcher, "SURE_SECONDS", 60)
    monkeypatch.setattr(rsgi.processes, "set_stop_handler", lambda stop, is_busy: None)
    monkeypatch.setattr(rsgi, "_stopping_by_signal", lambda: lambda: None)
    monkeypatch.setattr(rsgi, "drop_stalled_readers", lambda: True)


@pytest.fixture
def secret() -> Iterator[str]:
    make_project("shop")
    make_flag("a", enabled=True)
    make_flag("b", "default")
    cache.clear()
    yield make_token("backend", projects=["shop"], environment="production", name="sdk")
    cache.clear()


def comparable(answer: Any) -> Any:
    """Without the ids that every request and every error has."""
    status, headers, body = answer
    return (
        status,
        [(name, value) for name, value in headers if name != "X-Request-Id"],
        ERROR_ID.sub(b"", body),
    )


def variants(secret: str, etag: str) -> Iterator[Pairs]:
    """Header lists, most of them odd."""
    own = [HOST, ("Authorization", secret), SPEC]
    yield own
    for known in (
        etag,
        f"W/{etag}",
        f'"x", {etag}',
        f'{etag},"y"',
        f" {etag}",
        "*",
        "",
        "unquoted",
        etag.strip('"'),
        etag.replace(":v1", ":v2"),
        '"00000000:1:v1"',
        f'{etag[:9]}:1:v1"',
        f'W/{etag[:9]}:1:v1"',
        f'{etag[:9]}:99999999:v1"',
    ):
        yield [*own, ("If-None-Match", known)]
    yield [*own, ("If-None-Match", '"x"'), ("If-None-Match", etag)]
    for encoding in ("gzip", "gzip;q=0", "identity", "*", "br, gzip;q=0.5", ""):
        yield [*own, ("Accept-Encoding", encoding)]
        yield [*own, ("Accept-Encoding", encoding), ("If-None-Match", etag)]
    for spec in ("4.1.0", "4.2.0", "", "v5", "nonsense", "5.2.0, 4.0.0"):
        yield [HOST, ("Authorization", secret), ("Unleash-Client-Spec", spec)]
    yield [HOST, ("Authorization", secret)]
    for authorization in (
        f"Bearer {secret}",
        f"bearer {secret}",
        f"BEARER   {secret}",
        f"  {secret} ",
        "Bearer",
        f"Basic {secret}",
        f"{secret}x",
        secret.upper(),
        "",
        f"{secret},{secret}",
    ):
        yield [HOST, ("Authorization", authorization), SPEC]
    yield [*own, ("Authorization", secret)]
    yield [HOST, SPEC]
    for host in ("elsewhere.example", "localhost:4242", "LOCALHOST", "localhost,localhost", "", "a b"):
        yield [("Host", host), *own[1:]]
    yield own[1:]
    yield [*own, HOST]
    for more in (
        ("Cookie", "sessionid="),
        ("Cookie", "sessionid=nosuch"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "elsewhere.example"),
        ("X-Request-Id", "trace-12345"),
        ("Content-Type", "application/json; charset=utf-16"),
        ("Origin", "https://elsewhere.example"),
        ("Accept", "text/html"),
        ("If-Modified-Since", "Sun, 22 Nov 2099 10:00:00 GMT"),
        ("If-Match", '"x"'),
        ("Range", "bytes=0-3"),
        ("Unleash_Client_Spec", "4.1.0"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("HX-Request", "true"),
    ):
        yield [*own, more]


def test_every_variant_is_answered_as_django_answers_it(secret: str) -> None:
    async def work(server: Server) -> int:
        etag = await server.warm_up(HOST, ("Authorization", secret), SPEC)
        from_memory = 0
        for headers in variants(secret, etag):
            expected = comparable(await server.ask_django(FEATURES, *headers))
            for _ in range(3):  # the first one may teach the next one
                assert comparable(await server.ask(FEATURES, *headers)) == expected, headers
            from_memory += server.from_memory
        return from_memory

    assert with_server(work) >= 40


def test_other_paths_and_methods(secret: str) -> None:
    async def work(server: Server) -> list[bool]:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        from_memory = []
        for method, path in (
            ("HEAD", FEATURES),
            ("OPTIONS", FEATURES),
            ("POST", FEATURES),
            ("get", FEATURES),
            ("GET", f"{FEATURES}/"),
            ("GET", f"/{FEATURES}"),
            ("GET", f"{FEATURES}?project=default&environment=development"),
            ("GET", f"{FEATURES}?namePrefix=b"),
            ("GET", f"{FEATURES}?namePrefix=%00"),
            ("GET", f"{FEATURES}?tag=simple:none"),
            ("GET", f"{FEATURES}?tag=none"),
            ("GET", "/api/client/features/a"),
        ):
            expected = comparable(await server.ask_django(path, *headers, method=method))
            for _ in range(3):
                assert comparable(await server.ask(path, *headers, method=method)) == expected, (method, path)
            from_memory.append(server.from_memory)
        return from_memory

    assert with_server(work) == [*[False] * 6, True, True, *[False] * 4]


def test_each_request_has_its_own_id(secret: str) -> None:
    async def work(server: Server) -> list[str]:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        given = [("X-Request-Id", "trace-12345")], [("X-Request-Id", "no good")], []
        return [dict((await server.ask(FEATURES, *headers, *ids))[1])["X-Request-Id"] for ids in given]

    own, *made = with_server(work)
    assert own == "trace-12345"
    assert len({*made, "no good"}) == 3


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
def test_what_has_changed_is_not_answered_from_memory(
    secret: str, change: Callable[[], Any], status: int
) -> None:
    async def work(server: Server) -> None:
        headers = (HOST, ("Authorization", secret), SPEC)
        etag = await server.warm_up(*headers)
        await server.changes(change)
        answer = await server.ask(FEATURES, *headers, ("If-None-Match", etag))
        assert (answer[0], server.from_memory) == (status, False)
        assert comparable(answer) == comparable(
            await server.ask_django(FEATURES, *headers, ("If-None-Match", etag))
        )

    with_server(work)


def test_a_token_expires_between_two_reads(secret: str) -> None:
    expires_at = timezone.now() + timedelta(seconds=2)
    ApiToken.objects.update(expires_at=expires_at)

    async def work(server: Server) -> None:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        state = server.watcher._state
        while timezone.now() < expires_at:
            await asyncio.sleep(0.01)
        assert (await server.ask(FEATURES, *headers))[0] == 401
        assert server.watcher._state is state

    with_server(work)


def test_a_change_of_another_project_keeps_the_answer(secret: str) -> None:
    async def work(server: Server) -> bool:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        await server.changes(lambda: Flag.objects.filter(name="b").update(stale=True))
        await server.ask(FEATURES, *headers)
        return server.from_memory

    assert with_server(work)


def test_a_change_while_django_answers(secret: str) -> None:
    """Before or after Django reads: what it answered is not replayed."""

    async def work(server: Server) -> None:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        for read_first in (True, False):
            server.shortcut._known.clear()
            learn = server.shortcut.learn(scope("GET", FEATURES, headers))
            assert learn
            answered = await in_thread(lambda: django_answers(headers)) if read_first else None
            await server.changes(lambda stale=read_first: Flag.objects.update(stale=stale))
            learn(*(answered or await in_thread(lambda: django_answers(headers))))
            assert server.shortcut.answer(scope("GET", FEATURES, headers)) is None

    def django_answers(headers: Pairs) -> tuple[Ready, Any]:
        return rsgi._answer(rsgi.environ_of(scope("GET", FEATURES, headers), b""), Protocol())

    with_server(work)


def test_a_newer_etag_is_djangos(secret: str) -> None:
    """Another worker knew more: this one must not answer with what is older."""

    async def work(server: Server) -> tuple[bool, bool]:
        headers = (HOST, ("Authorization", secret), SPEC)
        etag = await server.warm_up(*headers)
        revision = int(etag.split(":")[1])
        known = []
        for other in (revision - 1, revision + 1):
            await server.ask(FEATURES, *headers, ("If-None-Match", etag.replace(str(revision), str(other))))
            known.append(server.from_memory)
        return known[0], known[1]

    assert with_server(work) == (True, False)


def test_nothing_is_certain_without_the_watcher(secret: str) -> None:
    async def work(server: Server) -> bool:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        server.watcher._read_at = float("-inf")
        await server.ask(FEATURES, *headers)
        return server.from_memory

    assert not with_server(work)


def test_bodies_are_those_of_the_features_cache(secret: str) -> None:
    async def work(server: Server) -> None:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        body = (await server.ask(FEATURES, *headers))[2]
        assert any(answer.made(gzipped=False) is body for _, answer in cache.entries())
        cache.clear()
        gc.collect()  # Django's responses refer to themselves
        await server.ask(FEATURES, *headers)
        assert not server.from_memory

    with_server(work)


def test_answers_are_bounded(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_answers, "MAX_ANSWERS", 3)

    async def work(server: Server) -> int:
        headers = (HOST, ("Authorization", secret), SPEC)
        await server.warm_up(*headers)
        for number in range(6):
            await server.ask(FEATURES, *headers, ("Accept-Encoding", f"gzip, x{number}"))
        return len(server.shortcut._known)

    assert with_server(work) == 3


def test_the_probe(secret: str) -> None:
    async def work(server: Server) -> None:
        await server.warm_up(HOST, path="/healthz")
        for headers in (
            [HOST],
            [("Host", "elsewhere.example")],
            [],
            [HOST, ("Cookie", "sessionid=")],
            [HOST, ("X-Forwarded-Proto", "https")],
            [HOST, ("Authorization", "nonsense")],
        ):
            for path in ("/healthz", "/healthz?%00", "/healthz/"):
                expected = comparable(await server.ask_django(path, *headers))
                for _ in range(2):
                    assert comparable(await server.ask(path, *headers)) == expected

    with_server(work)


def test_which_etag_is_older() -> None:
    assert is_older('"00112233:5:v1"', '"00112233:6:v1"')
    assert is_older('W/"00112233:5:v1"', '"00112233:6:v1"')
    assert not is_older('"00112233:6:v1"', '"00112233:6:v1"')
    assert not is_older('"00112233:7:v1"', '"00112233:6:v1"')
    assert not is_older('"00112234:5:v1"', '"00112233:6:v1"')
    assert not is_older('"00112233:٥:v1"', '"00112233:6:v1"')
    assert not is_older("", '"00112233:6:v1"')

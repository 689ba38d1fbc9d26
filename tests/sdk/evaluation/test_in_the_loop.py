"""Contexts that the event loop evaluates get what Django answers them, and what it leaves to Django too."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from flagadmin.core.installation import state as installation
from flagadmin.core.installation.state import forget
from groups.models import ApiToken
from playground.evaluation_metrics import EVALUATIONS
from projects.models import Segment
from sdk.evaluation import prepared, shortcuts
from sdk.evaluation import prepared as evaluations
from sdk.evaluation import shortcuts as routes
from tests.support.cast import make_project, make_token
from tests.support.event_loop import Pairs
from tests.support.flags import make_flag
from tests.support.ofrep import FLAGS, constraint, rollout, variant
from tests.support.polling import HOST, Server, comparable, in_server, with_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("polling_routes")]
FRONTEND = "/api/frontend"
JSON = ("Content-Type", "application/json")


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(installation, "SECONDS", 60)  # on a busy machine, tests take more than two
    forget()
    make_project("shop")
    segment = Segment.objects.create(name="norwegians", constraints=[constraint("country", "NO")])
    colors = [variant("blue", "string", "#00f", 500), variant("red", "json", '{"c": 1}', 500)]
    make_flag("parent", enabled=True, strategies=[{"constraints": [constraint("userId", "7")]}])
    make_flag("local", enabled=True, strategies=[{"constraints": [constraint("remoteAddress", "10.0.0.7")]}])
    make_flag("norway", enabled=True, impression_data=True, strategies=[{"segments": [segment]}])
    make_flag("split", enabled=True, strategies=[rollout(50, "userId", variants=colors)])
    make_flag("everyone", enabled=True, variants=[variant("one")])
    make_flag("off")
    later = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2025-01-01T00:00:00Z"}
    make_flag("dated", enabled=True, strategies=[{"constraints": [later]}])
    yield
    forget()


@pytest.fixture
def web() -> str:
    return make_token("frontend", projects=["shop"], environment="development", name="web")


@pytest.fixture
def backend() -> str:
    return make_token("backend", projects=["shop"], environment="development", name="server")


def alike(answer: Any) -> Any:
    """An answer to compare: in the loop, headers stand in another order."""
    status, headers, body = comparable(answer)
    return status, sorted(headers), body


async def compare(server: Server, path: str, *headers: Any, **more: Any) -> bool:
    """Whether the loop answered; what it answered is what Django answers."""
    expected = alike(await server.ask_django(path, *headers, **more))
    for _ in range(3):  # the first one may teach the next one
        assert alike(await server.ask(path, *headers, **more)) == expected, (path, headers, more)
    return server.from_memory


QUERIES = [
    "",
    "?",
    "?userId=7",
    "?userId=7&userId=8",
    "?userId=&country=",
    "?properties[country]=NO&country=SE",
    "?properties%5Bcountry%5D=NO",
    "?country=N%4F",
    "?remoteAddress=10.0.0.7",
    "?environment=production&project=default",
    "?userId=%C3%A9%F0%9F%98%80",
    "?userId=%ff&country=%E9",
    "?userId=1+2;country=NO",
    "?currentTime=2024-01-01T00:00:00Z",
    "?" + "&".join(f"x{n}={n}" for n in range(100)),
]
LEFT_QUERIES = [
    "?currentTime=soon",
    "?userId=%00",
    "?userId=" + "x" * 20_000,
    "?" + "&".join(f"x{n}=" for n in range(1_100)),
]


@pytest.mark.parametrize("path", [FRONTEND, "/api/proxy"])
@in_server
async def test_queries(server: Server, web: str, path: str) -> None:
    own = (HOST, ("Authorization", web))
    await server.warm_up(*own, path=path)
    for query in QUERIES:
        _, headers, _ = await server.ask(path + query, *own)
        assert await compare(server, path + query, *own) or query == ""
        known = ("If-None-Match", dict(headers)["ETag"])
        await server.warm_up(*own, known, path=path + query)
        assert await compare(server, path + query, *own, known), query
    for query in LEFT_QUERIES:
        assert not await compare(server, path + query, *own), query


def odd_headers(secret: str, etag: str) -> Iterator[Pairs]:
    own: Pairs = [HOST, ("Authorization", secret)]
    for known in (f"W/{etag}", f'"x", {etag}', "*", "", "unquoted", '"00000000"', etag.strip('W/"')):
        yield [*own, ("If-None-Match", known)]
    yield [*own, ("If-None-Match", '"x"'), ("If-None-Match", etag)]
    for authorization in (
        f"Bearer {secret}",
        f"  {secret} ",
        "Bearer",
        f"{secret}x",
        "",
        f"{secret},{secret}",
    ):
        yield [HOST, ("Authorization", authorization)]
    yield [HOST]
    yield [HOST, ("X-API-Key", secret)]
    yield [*own, ("X-API-Key", "wrong")]
    for host in ("elsewhere.example", "localhost:4242", "", "a b"):
        yield [("Host", host), *own[1:]]
    yield own[1:]
    for more in (
        ("Cookie", "sessionid="),
        ("Origin", "https://app.example"),
        ("Origin", "null"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-For", "10.0.0.7"),
        ("X-Request-Id", "trace-12345"),
        ("Content-Type", "application/json"),
        ("Content-Type", "application/json; charset=utf-16"),
        ("Accept", "text/html"),
        ("Accept-Encoding", "gzip"),
        ("Content-Encoding", "gzip"),
        ("X-HTTP-Method-Override", "DELETE"),
    ):
        yield [*own, more]


@in_server
async def test_odd_headers(server: Server, web: str) -> None:
    etag = await server.warm_up(HOST, ("Authorization", web), path=FRONTEND)
    in_loop = 0
    for headers in odd_headers(web, etag):
        in_loop += await compare(server, f"{FRONTEND}?userId=7", *headers)
        in_loop += await compare(server, FLAGS, *headers, JSON, method="POST", body=b"{}")
    assert in_loop >= 25


BODIES = [
    {},
    {"context": None},
    {"context": {}},
    {"context": {"userId": "7", "properties": {"country": "NO"}}},
    {"context": {"userId": 7, "country": True, "x": 1.50}},
    {"context": {"targetingKey": "7", "country": "NO"}},
    {"context": {"remoteAddress": "10.0.0.7", "environment": "production"}},
    {"userId": "7"},
    {"context": {"userId": "é😀"}, "more": [1, {"a": None}]},
]
LEFT_BODIES: list[Any] = [
    [],
    "x",
    {"context": 5},
    {"context": {"userId": {}}},
    {"context": {"properties": 1}},
]
RAW = [
    b"{",
    b'{"context": {"userId": NaN}}',
    b'{"context": {"userId": "\\u0000"}}',
    b'"' + b"x" * 20_000 + b'"',
]


@pytest.mark.parametrize("path", [FRONTEND, FLAGS, f"{FLAGS}/everyone"])
@in_server
async def test_bodies(server: Server, web: str, path: str) -> None:
    own = (HOST, ("Authorization", web), JSON)
    await server.warm_up(*own, path=path, method="POST", body=b"{}")
    left = []
    for document in (*BODIES, *LEFT_BODIES):
        body = json.dumps(document).encode()
        if not await compare(server, path, *own, method="POST", body=body):
            left.append(document)
        assert not await compare(server, f"{path}/", *own, method="POST", body=body)
    for body in RAW:
        assert not await compare(server, path, *own, method="POST", body=body)
    assert not await compare(server, f"{path}?x=1", *own, method="POST", body=b"{}")
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        odd = (*own[:2], ("Content-Type", content_type))
        await compare(server, path, *odd, method="POST", body=b"a=1")
        await compare(server, path, *odd, method="POST", body=b"{}")
        await compare(server, path, *odd, method="POST")
    # A list or an object as a property is the application's own for OpenFeature, and an error elsewhere.
    assert [each for each in left if each not in LEFT_BODIES] == []


@in_server
async def test_openfeature_by_backend_and_frontend_tokens(server: Server, web: str, backend: str) -> None:
    for secret in (web, backend):
        own = (HOST, ("X-API-Key", secret), JSON, ("Origin", "https://app.example"))
        for user in ("7", "8", "9"):
            body = json.dumps({"context": {"targetingKey": user, "country": "NO"}}).encode()
            etag = await server.warm_up(*own, path=FLAGS, method="POST", body=body)
            assert await compare(server, FLAGS, *own, method="POST", body=body)
            known = (*own, ("If-None-Match", etag))
            await server.warm_up(*known, path=FLAGS, method="POST", body=body)
            assert await compare(server, FLAGS, *known, method="POST", body=body)
            for name in ("split", "norway", "everyone", "off"):
                await server.warm_up(*own, path=f"{FLAGS}/{name}", method="POST", body=body)
                assert await compare(server, f"{FLAGS}/{name}", *own, method="POST", body=body)
        for name in ("nope", "a/b", ""):
            assert not await compare(server, f"{FLAGS}/{name}", *own, method="POST", body=body)
        assert not await compare(server, f"{FLAGS}/split", *own, method="POST", body=b"{}")


@in_server
async def test_a_change_shows_and_a_revoked_token_ends(server: Server, web: str) -> None:
    own = (HOST, ("Authorization", web))
    before = await server.warm_up(*own, path=FRONTEND)
    await server.changes(lambda: make_flag("new", enabled=True))
    status, _, body = await server.ask(FRONTEND, *own, ("If-None-Match", before))
    assert (status, b'"new"' in body) == (200, True)
    await server.warm_up(*own, path=FRONTEND)
    await server.changes(lambda: ApiToken.objects.all().delete())
    assert (await server.ask(FRONTEND, *own))[0] == 401


@in_server
async def test_origins_that_are_changed_count(server: Server, web: str, settings: Any) -> None:
    own = (HOST, ("Authorization", web), ("Origin", "https://app.example"))
    settings.FRONTEND_API_ORIGINS = ["https://app.example"]
    await server.warm_up(*own, path=FRONTEND)
    assert dict((await server.ask(FRONTEND, *own))[1])["Access-Control-Allow-Origin"] == "https://app.example"
    settings.FRONTEND_API_ORIGINS = ["https://other.example"]
    assert "Access-Control-Allow-Origin" not in dict((await server.ask(FRONTEND, *own))[1])


def test_chance_is_never_remembered(web: str) -> None:
    make_flag("drawn", enabled=True, strategies=[rollout(50, "random")])
    own = (HOST, ("Authorization", web))

    async def work(server: Server) -> None:
        await server.warm_up(*own, path=FRONTEND)
        answers = [await server.ask(FRONTEND, *own) for _ in range(40)]
        assert server.from_memory
        assert len({body for _, _, body in answers}) == 2
        assert len({dict(headers)["ETag"] for _, headers, _ in answers}) == 2

    with_server(work)


@in_server
async def test_nothing_is_evaluated_for_who_has_the_answer_or_asks_again(server: Server, web: str) -> None:
    own = (HOST, ("Authorization", web))
    evaluated = EVALUATIONS.labels("frontend")
    etag = await server.warm_up(*own, path=f"{FRONTEND}?userId=1")
    await server.warm_up(*own, ("If-None-Match", etag), path=f"{FRONTEND}?userId=1")
    before = evaluated._value.get()
    assert (await server.ask(f"{FRONTEND}?userId=1&other=2", *own, ("If-None-Match", etag)))[0] == 304
    assert (await server.ask(f"{FRONTEND}?userId=1", *own))[0] == 200
    assert evaluated._value.get() == before
    await server.ask(f"{FRONTEND}?userId=2", *own)
    assert evaluated._value.get() == before + 7


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [(routes, "MAX_TOGGLES", 3), (prepared.Prepared, "has_toggles", False), (shortcuts, "MAX_TEXT", 3)],
)
@in_server
async def test_what_would_take_long_is_left_to_django(
    server: Server, web: str, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: Any
) -> None:
    own = (HOST, ("Authorization", web))
    await server.warm_up(*own, path=FRONTEND)
    expected = alike(await server.ask_django(f"{FRONTEND}?userId=4", *own))
    monkeypatch.setattr(module, name, value)
    evaluations.remembered.clear()
    shortcuts._etags.clear()
    assert alike(await server.ask(f"{FRONTEND}?userId=4", *own)) == expected
    assert not server.from_memory


@in_server
async def test_what_took_long_is_left_to_django_for_a_while(
    server: Server, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (HOST, ("Authorization", web))
    await server.warm_up(*own, path=FRONTEND)
    monkeypatch.setattr(shortcuts, "SLOW", -1.0)
    for _ in range(shortcuts.TIMES):
        await server.ask(FRONTEND, *own)
    assert not await compare(server, FRONTEND, *own)

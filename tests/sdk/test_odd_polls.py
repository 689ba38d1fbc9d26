"""Odd polls are answered from memory exactly as Django answers them."""

from collections.abc import Iterator

import pytest

from tests.support.event_loop import Pairs
from tests.support.polling import FEATURES, HOST, SPEC, Server, comparable, in_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("polling_routes")]


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


@in_server
async def test_every_variant_is_answered_as_django_answers_it(server: Server, polled_secret: str) -> None:
    etag = await server.warm_up(HOST, ("Authorization", polled_secret), SPEC)
    from_memory = 0
    for headers in variants(polled_secret, etag):
        expected = comparable(await server.ask_django(FEATURES, *headers))
        for _ in range(3):  # the first one may teach the next one
            assert comparable(await server.ask(FEATURES, *headers)) == expected, headers
        from_memory += server.from_memory
    assert from_memory >= 40


@in_server
async def test_other_paths_and_methods_are_answered_as_django_answers_them(
    server: Server, polled_secret: str
) -> None:
    headers = (HOST, ("Authorization", polled_secret), SPEC)
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
    assert from_memory == [*[False] * 6, True, True, *[False] * 4]


@in_server
async def test_odd_probes_are_answered_as_django_answers_them(server: Server, polled_secret: str) -> None:
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

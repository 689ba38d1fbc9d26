"""The cache of deploy/nginx.conf: nobody gets an answer that was made for another key."""

import json
from collections.abc import Iterator

from tests.attack.calls import Call, Verdict
from tests.attack.installation import Installation
from tests.attack.result import Result
from tests.support.live_server import reserved_port
from tests.support.nginx import Nginx, running_nginx

FEATURES = "/api/client/features"
MADE_UP = 300  # tokens: their refusals may not fill the cache
HEADERS: tuple[dict[str, str], ...] = (
    {}, {"Accept-Encoding": "gzip"}, {"If-None-Match": "*"}, {"Range": "bytes=0-10"}, {"Cache-Control": "only-if-cached"},
    {"Pragma": "no-cache"}, {"X-Forwarded-Host": "evil.example"}, {"X-Forwarded-For": "1.2.3.4"}, {"Vary": "*"},
    {"Unleash-Client-Spec": "5.2.0"}, {"Unleash-Client-Spec": "0"}, {"Cookie": "sessionid=x"}, {"X-Original-URL": "/api/admin/user"},
    {"X-HTTP-Method-Override": "DELETE"}, {"Origin": "https://evil.example"},
)  # fmt: skip
QUERIES = ("", "?", "?project=sealed", "?a=b", "?%20", "?namePrefix=sealed", "#x")


def attacks(target: Installation) -> Iterator[Result]:
    with (
        reserved_port() as port,
        running_nginx(target.folder / "nginx", port, [target.port]) as front,
    ):
        yield answers(target, front)


def answers(target: Installation, front: Nginx) -> Result:
    verdict = Verdict(target)
    for headers in HEADERS:
        for query in QUERIES:
            for key in ("backend", "portal", "frontend", ""):
                ask(verdict, front, key, FEATURES + query, headers)
    for number in range(MADE_UP):
        answer = front.get(FEATURES, Authorization=f"*:production.{number:056}")
        if answer.status not in (401, 503):
            verdict.fault(f"a made-up token: {answer.status}")
    kept = len([path for path in (front.folder / "cache").rglob("*") if path.is_file()])
    if kept > len(HEADERS) * len(QUERIES) * 2:
        verdict.fault(f"{kept} files in the cache")
    for path in ("/metrics", "/../metrics", "/%6detrics", "//metrics"):
        if (status := front.get(path).status) not in (400, 404):
            verdict.fault(f"{path}: {status}")
    return verdict.result("the cache of nginx", f"{kept} answers kept")


def ask(verdict: Verdict, front: Nginx, key: str, path: str, headers: dict[str, str]) -> None:
    sent = headers | ({"Authorization": verdict.target.keys[key]} if key else {})
    answer = front.get(path.partition("#")[0], **sent)
    refused = range(400, 404) if key in ("frontend", "") else (200, 304, 400, 412, 416)
    body = answer.body
    if answer.headers.get("content-encoding") == "gzip":
        import gzip

        body = gzip.decompress(body)
    verdict.saw(Call(key, "GET", path, None, headers, refused), answer.status, body)
    if "set-cookie" in answer.headers and 'sessionid=""' not in answer.headers["set-cookie"]:
        verdict.fault(f"a cookie for {key or 'nobody'}")
    if key == "portal" and answer.status == 200:
        names = {flag["project"] for flag in json.loads(body)["features"]}
        if names - {"legacy-portal"}:
            verdict.fault(f"{path} with {headers}: flags of {names}")

"""Logins through an identity provider that lies, and one that is slow; and back-channel logout."""

import http.client
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.attack import lying_provider
from tests.attack.calls import Call, Verdict, at_once
from tests.attack.installation import Installation
from tests.attack.lying_provider import CLIENT, CLIENT_SECRET, KEY, LIES, MAY_BE_TRUE, OTHER, TOKEN, Liar
from tests.attack.resources import Attacked, beside
from tests.attack.result import Result

START, BACK, LOGOUT = "/login/sso/", "/login/sso/callback/", "/login/sso/logout/"
PATIENCE = 12.0  # seconds for an answer that waits for the provider
WAITING = 80  # who make the server ask a slow provider: more than it has threads
EVENT = "http://schemas.openid.net/event/backchannel-logout"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
GOOD_FOR_LOGOUT = ("without a nonce", "for two clients")  # rules of ID tokens, not of logout tokens
BAD_FOR_LOGOUT: tuple[dict[str, Any], ...] = (
    {"sub": "\ud800"}, {"sid": "\0"}, {"events": []}, {"events": None}, {"jti": None}, {"nonce": "n"}, {"iat": 1},
)  # fmt: skip
ODD_QUERIES = (
    "", "code=", "state=", "code=a&state=b", "error=access_denied", "error=%00&error_description=" + "x" * 5_000,
    "code=a&code=b&state=%ff", "error=%0d%0aSet-Cookie:%20a=b", "iss=https://evil.example&code=a&state=b",
)  # fmt: skip
ELSEWHERE = ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/%0d%0aa:b")
HONEST = (*range(200, 500), 502, 503)


class Browser:
    """Keeps cookies, and follows nothing."""

    def __init__(self, target: Installation) -> None:
        self.target, self.cookies = target, {}

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, str, bytes]:
        """The status, where to, and the body."""
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} | headers
        with closing(http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=60)) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            for cookie in answer.headers.get_all("Set-Cookie", []):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value
            return answer.status, answer.headers.get("Location", ""), answer.read()

    def is_in(self) -> bool:
        return self.ask("/account/")[0] == 200


def options(liar: Liar) -> dict[str, str]:
    """The server's variables."""
    given = {"ISSUER": liar.issuer, "CLIENT_ID": CLIENT, "CLIENT_SECRET": CLIENT_SECRET}
    given |= {"CREATE_ACCOUNTS": "1", "ROOT_ROLE": "Viewer", "GROUPS_CLAIM": "groups"}
    return {f"FLAGADMIN_OIDC_{name}": value for name, value in given.items()}


def log_in(
    target: Installation, liar: Liar, verdict: Verdict, code: str = "a-code-of-the-provider"
) -> Browser:
    """A login as far as it comes. What the log must not have afterwards is in ``code``."""
    browser, began = Browser(target), time.perf_counter()
    status, away, answer = browser.ask(START)
    asked = parse_qs(urlsplit(away).query)
    if "state" in asked:
        liar.nonce = asked["nonce"][0]
        status, _, answer = browser.ask(f"{BACK}?{urlencode({'code': code, 'state': asked['state'][0]})}")
    verdict.saw(
        Call("", "GET", f"{BACK} ({liar.lie})", statuses=HONEST),
        status,
        answer,
        time.perf_counter() - began,
    )
    return browser


def attacks(target: Installation, liar: Liar, seconds: float, quiet: float) -> Iterator[Result]:
    yield lies(target, liar)
    yield odd_ways_back(target, liar)
    yield logouts(target, liar)
    yield beside(
        "a slow identity provider",
        target,
        quiet,
        lambda: wait_for_it(target, liar, max(seconds / 2, 15)),
        PATIENCE,
    )


def lies(target: Installation, liar: Liar) -> Result:
    verdict = Verdict(target, PATIENCE)
    for lie in ("", *LIES):
        liar.lie = lie
        is_in = log_in(target, liar, verdict).is_in()
        if is_in != (not lie) and lie not in MAY_BE_TRUE:
            verdict.fault(f"{lie or 'the truth'}: {'logged in' if lie else 'refused'}")
    liar.lie = ""
    return judged(verdict, f"an identity provider with {len(LIES)} lies")


def odd_ways_back(target: Installation, liar: Liar) -> Result:
    """What a browser may bring back that the provider never sent."""
    verdict = Verdict(target, PATIENCE)
    for query in ODD_QUERIES:
        verdict.send(Call("", "GET", f"{BACK}?{query}"))
    for path in ELSEWHERE:
        browser = Browser(target)
        _, away, _ = browser.ask(
            f"{START}?{urlencode({'next': path, 'process': 'connect', 'scope': 'admin'})}"
        )
        asked = parse_qs(urlsplit(away).query)
        liar.nonce = asked["nonce"][0]
        query = urlencode({"code": "c", "state": asked["state"][0]})
        other = Browser(target)
        other.ask(f"{BACK}?{query}")  # somebody else's browser
        if other.is_in():
            verdict.fault("a login begun by another browser")
        status, back, answer = browser.ask(f"{BACK}?{query}")
        verdict.saw(Call("", "GET", f"{BACK} after {path}"), status, answer)
        if not back.startswith("/") or back.startswith(("//", "/\\")):
            verdict.fault(f"sent to {back}")
    return judged(verdict, "odd ways back from the identity provider")


def logouts(target: Installation, liar: Liar) -> Result:
    """Nothing but a token of the provider ends a session, and that does."""
    verdict = Verdict(target, PATIENCE)
    browser = log_in(target, liar, verdict)
    good = {name: value for name, value in liar.claims().items() if name != "nonce"}
    good |= {"jti": "1", "events": {EVENT: {}}}
    time.sleep(5.5)  # the keys of a lie are forgotten

    def send(token: str) -> int:
        body = urlencode({"logout_token": token})
        return verdict.send(Call("", "POST", LOGOUT, body.encode(), FORM, HONEST))[0]

    others = [make(good) for name, make in lying_provider.ID_TOKENS.items() if name not in GOOD_FOR_LOGOUT]
    others += [lying_provider.claim(**change)(good) for change in BAD_FOR_LOGOUT]
    for token in [lying_provider.signed(OTHER, **good), *map(str, others), "", "\0", "x" * 60_000]:
        if send(token) == 200 and not browser.is_in():
            verdict.fault(f"{token[:50]} ended a session")
    if send(lying_provider.signed(KEY, **good)) != 200 or browser.is_in():
        verdict.fault("the provider's own token ended nothing")
    return judged(verdict, "back-channel logouts")


def judged(verdict: Verdict, name: str) -> Result:
    log = verdict.target.log.read_bytes()
    for text in (CLIENT_SECRET, TOKEN, "a-code-of-the-provider"):
        if text.encode() in log:
            verdict.fault(f"the log has {text}")
    return verdict.result(name)


def wait_for_it(target: Installation, liar: Liar, seconds: float) -> Attacked:
    """More callers without a key than there are threads make the server ask a provider that answers byte by byte."""
    found, until = Attacked(), time.monotonic() + seconds
    liar.lie = "config: slow"

    def call(number: int) -> None:
        asked = ("GET", START, None) if number % 2 else ("POST", LOGOUT, b"logout_token=a.b.c")
        while time.monotonic() < until:
            began = time.perf_counter()
            status, answer = target.call("", *asked, **FORM)
            found.saw(status, time.perf_counter() - began, len(answer))
            time.sleep(1)

    at_once(WAITING, call)
    liar.lie = ""
    return found

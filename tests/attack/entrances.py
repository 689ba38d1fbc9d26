"""Ways in: passwords, second factors, one-time links, invite links, sessions, and the API of people."""

import base64
import hmac
import http.client
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

from tests.attack import protocols
from tests.attack.calls import ODD, Call, Verdict, at_once, judge
from tests.attack.installation import PASSWORD, Installation
from tests.attack.result import Result
from tests.attack.sign_on import FORM, Browser

AT_ONCE = 8
GUESSES = 60
ADMIN, INVITES = "/api/admin", "/api/admin/invite-link/tokens"
PATHS = ("x", "..%2f..%2fadmin", "%00", "%ff", "'%20OR%201=1", "x" * 3_000, "shell-", "0")
OPEN = {
    "/auth/simple/login": ("username", "password", "code"),
    "/auth/reset/password": ("token", "password"),
    "/auth/reset/validate-password": ("password",),
    "/auth/reset/password-email": ("email",),
    "/invite/x/signup": ("username", "email", "name", "password"),
}
PEOPLE: dict[tuple[str, str], dict[str, object]] = {
    ("POST", f"{ADMIN}/user-admin"): {"username": "odd", "rootRole": 3},
    ("POST", f"{ADMIN}/user-admin/reset-password"): {"id": "nobody"},
    ("POST", f"{ADMIN}/user-admin/inactive/delete"): {"ids": [0]},
    ("POST", f"{ADMIN}/user-admin/validate-password"): {"password": "x"},
    ("POST", f"{ADMIN}/user-admin/0/change-password"): {"password": "x"},
    ("POST", f"{ADMIN}/groups"): {"name": "odd", "users": []},
    ("POST", f"{ADMIN}/roles"): {"name": "odd", "permissions": []},
    ("POST", INVITES): {"name": "odd", "expiresAt": "x", "rootRole": 3},
    ("POST", f"{ADMIN}/service-account"): {"username": "odd-robot", "rootRole": 3},
    ("POST", f"{ADMIN}/projects/checkout/access"): {"roles": [4], "users": [], "groups": []},
    ("PUT", f"{ADMIN}/projects/checkout/access"): {"roles": []},
}
FORBIDDEN = (
    f"{ADMIN}/user-admin",
    INVITES,
    f"{ADMIN}/service-account",
    f"{ADMIN}/instance-admin/statistics/csv",
)
OWN = (
    "user", "user/tokens", "user-admin/inactive", "personal-dashboard/sealed", "event-creators", "flag-creators", "flag-views",
)  # fmt: skip
LINKS = ("/invite/{}/validate", "/login/invite/{}/", "/login/link/{}/", "/auth/reset/validate?token={}")
COOKIES = ("", "x", "\xff", "'", "a" * 32, "../../etc/passwd", "x" * 3_900, '"; csrftoken="', "%00")


def people() -> Iterator[Call]:
    for (method, path), body in PEOPLE.items():
        for name in body:
            for value in ODD:
                for key in ("admin", "outsider"):
                    yield Call(key, method, path, body | {name: value})
    for path in FORBIDDEN:
        yield Call("outsider", "GET", path, statuses=(403, 404))
        yield Call("", "GET", path, statuses=(401,))
        for end in PATHS:
            yield Call("admin", "GET", f"{path}/{end}")
    for path in OWN:
        yield Call("outsider", "GET", f"{ADMIN}/{path}?q=%00&daysSinceLastSeen=9e9")
    for path in ("status", "flag-creators", "access", "overview", "api-tokens"):
        yield Call("outsider", "GET", f"{ADMIN}/projects/sealed/{path}", statuses=(403, 404))


def entered() -> Iterator[Call]:
    for path, names in OPEN.items():
        for name in names:
            for value in ODD:
                yield Call("", "POST", path, dict.fromkeys(names, "x") | {name: value})
        for body in (b"", b"[]", b"7", b"{", b"x" * 100_000):
            yield Call("", "POST", path, body)
        yield Call("", "POST", path, {}, {"Origin": "https://evil.example"}, (400, 403))
    for end in PATHS:
        for path in LINKS:
            yield Call("", "GET", path.format(end), statuses=range(400, 432))
    for cookie in COOKIES:
        for path in ("/account/", "/api/admin/user", "/admin/"):
            headers = {"Cookie": f"sessionid={cookie}; messages={cookie}; csrftoken={cookie}"}
            yield Call("", "GET", path, None, headers, (302, 400, 401, 403, 431))


def attacks(target: Installation, seconds: float) -> Iterator[Result]:
    yield judge("odd people, groups and links", target, people(), seconds / 3)
    yield judge("odd calls of agents and of a SCIM provider", target, protocols.calls(), 1)
    yield once(target, "a login link used by many at once", login_link, 1)
    yield once(target, "one name signs up by many at once", sign_up, 1)
    # Before what makes the throttle refuse this address.
    yield sessions(target)
    yield guesses(target)
    yield judge("odd ways in", target, entered(), seconds / 3)


def login_link(target: Installation, _: int) -> bool:
    browser = Browser(target)
    opened = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    browser.ask(f"/login/link/{target.links['login']}/", **opened)
    return browser.is_in()


def sign_up(target: Installation, number: int) -> bool:
    body = {
        "username": "raced",
        "email": f"raced-{number}@example.org",
        "name": "Raced",
        "password": PASSWORD,
    }
    status, _ = target.call("", "POST", f"/invite/{target.links['invite']}/signup", body)
    if status >= 500:
        raise ValueError(status)
    return status < 300


def once(
    target: Installation, name: str, attempt: Callable[[Installation, int], bool], winners: int
) -> Result:
    def run(number: int) -> str:
        try:
            return "in" if attempt(target, number) else "refused"
        except (OSError, ValueError, http.client.HTTPException) as error:
            return repr(error)

    found, verdict = Counter(at_once(AT_ONCE, run)), Verdict(target)
    if found != {"in": winners, "refused": AT_ONCE - winners}:
        verdict.fault(str(dict(found)))
    return verdict.result(name, f"{found['in']} of {AT_ONCE} in")


def with_password(target: Installation) -> tuple[Browser, int]:
    """A browser after the form of the password, and the status."""
    browser = Browser(target)
    form = {"username": "attacked", "password": PASSWORD}
    status, _, _ = submit(browser, "/login/", form)
    return browser, status


def submit(browser: Browser, path: str, form: dict[str, str]) -> tuple[int, str, bytes]:
    _, _, page = browser.ask(path)
    token = re.search(rb'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    sent = form | {"csrfmiddlewaretoken": token[1].decode() if token else ""}
    return browser.ask(path, "POST", urlencode(sent), **FORM)


def code_of(secret: str) -> str:
    """The code of an authenticator app now (RFC 6238)."""
    digest = hmac.digest(base64.b32decode(secret), (int(time.time()) // 30).to_bytes(8, "big"), "sha1")
    start = digest[-1] & 15
    return f"{(int.from_bytes(digest[start : start + 4], 'big') & 0x7FFFFFFF) % 10**6:06}"


def sessions(target: Installation) -> Result:
    """The password alone opens nothing, a code works once, and a session that has ended stays so."""
    verdict = Verdict(target)
    browser, status = with_password(target)
    if status != 302 or browser.is_in():
        verdict.fault(f"the password alone: {status}, in: {browser.is_in()}")
    halfway, code = dict(browser.cookies), code_of(target.links["app"])
    submit(browser, "/login/code/", {"code": code})
    if not browser.is_in():
        verdict.fault("the right code is refused")
    if browser.cookies.get("sessionid") == halfway.get("sessionid"):
        verdict.fault("the session keeps its key after the login")
    other, _ = with_password(target)
    submit(other, "/login/code/", {"code": code})
    if other.is_in():
        verdict.fault("a code worked twice")
    kept = Browser(target)
    kept.cookies = dict(browser.cookies)
    token = browser.cookies["csrftoken"]
    browser.ask("/logout/", "POST", urlencode({"csrfmiddlewaretoken": token}), **FORM)
    if kept.is_in():
        verdict.fault("a session works after logging out")
    forged = Browser(target)
    forged.cookies = {"sessionid": target.sessions["console"]}
    for method, path in (
        ("POST", "/theme/"),
        ("POST", "/account/log-out-everywhere/"),
        ("POST", f"{ADMIN}/projects"),
    ):
        status, _, answer = forged.ask(path, method, "{}", **{"Content-Type": "application/json"})
        verdict.saw(Call("admin", method, path, statuses=range(300, 404)), status, answer)
    if not forged.is_in():
        verdict.fault("a request of another site ended a session")
    return verdict.result("sessions and codes, used again")


def guesses(target: Installation) -> Result:
    """Codes and passwords are guessed: soon, the answer is to wait."""
    verdict, slowed = Verdict(target), Counter[str]()
    browser, _ = with_password(target)
    for number in range(GUESSES):
        status, _, answer = submit(browser, "/login/code/", {"code": f"{number:06}"})
        verdict.saw(Call("", "POST", "/login/code/"), status, answer)
        slowed["codes"] += status == 429
        body = {"username": "attacked", "password": f"guess {number}"}
        status, _ = verdict.send(Call("", "POST", "/auth/simple/login", body))
        slowed["passwords"] += status == 429
        status, _ = verdict.send(Call("", "POST", "/login/", urlencode(body).encode(), FORM))
    if browser.is_in():
        verdict.fault("a guess was right")
    for kind in ("codes", "passwords"):
        if slowed[kind] < GUESSES / 2:
            verdict.fault(f"{GUESSES - slowed[kind]} of {GUESSES} {kind} were checked")
    return verdict.result("guesses", f"{slowed['codes']} codes and {slowed['passwords']} passwords unchecked")

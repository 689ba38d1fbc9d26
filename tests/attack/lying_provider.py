"""An identity provider that lies, or is slow: one lie at a time, named in ``LIES``."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT, CLIENT_SECRET = "flagadmin", "the-secret-of-the-client"
TOKEN = "an-access-token-of-the-provider"
KEY, OTHER = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
NAMES = {"/.well-known/openid-configuration": "config"} | {
    f"/{name}": name for name in ("token", "keys", "userinfo")
}
DEEP = b"[" * 100_000 + b"]" * 100_000
SLOW_BYTES = 60  # one in a second
HUGE_BLOCKS = 2_000  # of 1 MB


def signed(key: Any = KEY, algorithm: str = "ES256", **claims: Any) -> str:
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": "one"})


def unsigned(claims: dict[str, Any], **header: Any) -> str:
    parts = ({"alg": "none"} | header, claims)
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        + "."
    )


def claim(**changes: Any) -> Callable[[dict[str, Any]], str]:
    """An ID token with other claims; those that are None are left out."""
    return lambda claims: signed(**{n: v for n, v in (claims | changes).items() if v is not None})


# What is sent in the place of a token of a login, made from the claims that would be right.
ID_TOKENS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "of another issuer": claim(iss="https://evil.example"),
    "for another client": claim(aud="other"),
    "for two clients": claim(aud=[CLIENT, "other"]),
    "of another login": claim(nonce="x"),
    "without a nonce": claim(nonce=None),
    "that has expired": claim(exp=1),
    "of tomorrow": claim(iat=time.time() + 90_000),
    "with another's key": lambda claims: signed(OTHER, **claims),
    "signed with the client's secret": lambda claims: signed(CLIENT_SECRET * 2, "HS256", **claims),
    "without a signature": unsigned,
    "with a key of its own": lambda claims: unsigned(
        claims, alg="ES256", jwk={"kty": "EC"}, jku="http://127.0.0.1:1"
    ),
    "about nobody": claim(sub=""),
    "about a number": claim(sub=7),
    "about a list": claim(sub=["anna"]),
    "about too long a name": claim(sub="x" * 300_000),
    "with endless times": claim(exp=float("inf"), iat=float("-inf")),
    "with long numbers": claim(exp=10**400, iat=10**400),
    "with times that are lists": claim(exp=[], iat={}, nbf=True),
    "with a kid that is a list": lambda claims: unsigned(claims, alg="ES256", kid=[]),
    "that is a number": lambda claims: 7,
    "that is a list": lambda claims: [[]],
    "that is no token": lambda claims: "a.b.c",
    "of a deep list": lambda claims: f"{base64.urlsafe_b64encode(DEEP).decode()}.e30.e30",
}
# Claims that are odd, but true: they may log somebody in.
ODD_CLAIMS: dict[str, dict[str, Any]] = {
    "a name that is a list": {"name": [], "email": {}, "preferred_username": 7},
    "a name that is too long": {"name": "x" * 100_000, "email": "x" * 100_000},
    "letters that no database takes": {"name": "\0", "email": "a\ud800@b", "preferred_username": "\ud800"},
    "half a letter as a group": {"groups": ["\ud800", "\0", "", 7, [], {"a": 1}]},
    "half a letter as a session": {"sid": "\ud800\0"},
    "half a letter as a subject": {"sub": "\ud800"},
    "groups that are a number": {"groups": 7, "_claim_names": 7},
    "2,000 groups": {"groups": [f"g{number}" for number in range(2_000)]},
    "the name of an administrator": {"preferred_username": "attacker-admin", "email_verified": "true"},
}
# What else is sent, by where: bytes as they are, anything else as JSON.
BODIES: dict[str, tuple[str, Any]] = {
    f"{place}: {name}": (place, body)
    for place in ("config", "token", "keys", "userinfo")
    for name, body in {
        "a list": [], "a number": 7, "null": None, "a text": "x", "nothing": b"", "HTML": b"<html>", "deep": DEEP,
        "not UTF-8": b'{"a":"\xff"}', "an empty object": {}, "a long number": b'{"a":' + b"9" * 9_000 + b"}",
    }.items()
} | {
    "keys: a list of texts": ("keys", {"keys": ["x"]}),
    "keys: a text": ("keys", {"keys": "x"}),
    "keys: odd members": ("keys", {"keys": [{"kty": "EC", "crv": [], "x": 7}, {"kty": []}, {"kty": "RSA", "n": "AA", "e": "A"}]}),
    "token: without an access token": ("token", {"id_token": signed(sub="anna"), "refresh_token": TOKEN}),
    "token: refused": ("token", {"error": "invalid_grant", "refresh_token": TOKEN}),
    "config: texts that are none": ("config", {"issuer": 7, "jwks_uri": []}),
    "userinfo: somebody else": ("userinfo", {"sub": "somebody else"}),
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "config: another issuer": {"issuer": "https://evil.example"},
    "config: keys in a file": {"jwks_uri": "file:///etc/passwd"},
    "config: keys nowhere": {"jwks_uri": "http://127.0.0.1:1/keys"},
    "config: tokens in a file": {"token_endpoint": "file:///etc/passwd"},
    "config: methods that are a number": {"token_endpoint_auth_methods_supported": 7},
    "config: userinfo that is a number": {"userinfo_endpoint": 7},
    "config: no URLs": {"jwks_uri": "keys", "token_endpoint": "//["},
}
SENT = (
    "status",
    "redirect",
    "cut",
    "untyped",
    "huge",
    "slow",
)  # how an answer can be wrong, whatever is in it
MANNERS = [f"{place}: {manner}" for place in NAMES.values() for manner in SENT]
LIES = [f"an ID token {name}" for name in ID_TOKENS] + [*BODIES, *CONFIGS, *MANNERS, *ODD_CLAIMS]
MAY_BE_TRUE = {
    *ODD_CLAIMS,
    *(lie for lie in LIES if lie.endswith(": untyped")),
    "config: methods that are a number",
}


class Liar(ThreadingHTTPServer):
    """``lie`` is one of LIES, or "" for the truth; ``nonce`` that of the login that is under way."""

    daemon_threads = True
    request_queue_size = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.lie, self.nonce = "", ""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def claims(self) -> dict[str, Any]:
        now = int(time.time())
        made = {"iss": self.issuer, "aud": CLIENT, "sub": "anna", "nonce": self.nonce, "name": "Anna"}
        return made | {"iat": now, "exp": now + 300}

    def config(self) -> dict[str, Any]:
        places = {"token_endpoint": "token", "jwks_uri": "keys", "userinfo_endpoint": "userinfo"}
        urls = {name: f"{self.issuer}/{path}" for name, path in places.items()}
        truth = {"issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize", **urls}
        return truth | CONFIGS.get(self.lie, {})

    def body(self, place: str) -> Any:
        lying, said = BODIES.get(self.lie, ("", None))
        if lying == place:
            return said
        if place == "config":
            return self.config()
        if place == "keys":
            return {
                "keys": [jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {"kid": "one"}]
            }
        if place == "userinfo":
            return {"sub": ODD_CLAIMS.get(self.lie, {}).get("sub", "anna")}
        make = ID_TOKENS.get(self.lie.removeprefix("an ID token "), claim(**ODD_CLAIMS.get(self.lie, {})))
        return {"access_token": TOKEN, "token_type": "Bearer", "id_token": make(self.claims())}


class Answer(BaseHTTPRequestHandler):
    server: Liar

    def do_GET(self) -> None:
        place = NAMES.get(self.path.partition("?")[0], "")
        manner = self.server.lie.removeprefix(f"{place}: ") if self.server.lie in MANNERS else ""
        with suppress(OSError):
            self.answer(place, manner)

    do_POST = do_GET

    def answer(self, place: str, manner: str) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = self.server.body(place) if place else {}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(400 if b'"error"' in data else {"status": 500, "redirect": 302}.get(manner, 200))
        if manner != "untyped":
            self.send_header("Content-Type", "application/json")
        if manner == "redirect":
            self.send_header("Location", self.server.issuer + self.path)  # for ever
        if manner in ("", "cut", "untyped"):
            self.send_header("Content-Length", str(len(data) + (manner == "cut")))
        self.end_headers()
        if manner == "slow":
            for _ in range(SLOW_BYTES):
                self.wfile.write(b" ")
                time.sleep(1)
        for _ in range(HUGE_BLOCKS if manner == "huge" else 0):
            self.wfile.write(b" " * 1_000_000)
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def lying_provider() -> Iterator[Liar]:
    with Liar() as liar:
        threading.Thread(target=liar.serve_forever, daemon=True).start()
        yield liar
        liar.shutdown()

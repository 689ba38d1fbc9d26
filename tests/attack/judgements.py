"""What looks at many contexts or at the past: comparisons, drafts, imports to compare, expectations, runs of users."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.attack.calls import Call, Verdict, imported, judge
from tests.attack.installation import Installation
from tests.attack.resources import Attacked, beside_each, repeat
from tests.attack.result import Result

ADMIN = "/api/admin"
COMPARE, CHECK = f"{ADMIN}/playground/compare", f"{ADMIN}/playground/check-expectations"
ASSIGNED = f"{ADMIN}/playground/assignments?environment=production&flag=dark-theme"
INCIDENTS = f"{ADMIN}/playground/incidents"
PLANNED, USERS = f"{ADMIN}/features-batch/compare", f"{ADMIN}/playground/users"
SAVED = f"{ADMIN}/playground/contexts"
PATIENCE = 25.0  # seconds: a comparison gives up after 20
HERE = {"environment": "production"}
SAMPLE = {"synthetic": 10_000, "seed": 1}
MANY = {"explicit": [{"userId": str(n), "properties": {"region": "ab" * 200}} for n in range(10_000)]}
EVIL = {"contextName": "region", "operator": "REGEX", "value": "^[ab]*a[ab]{20}$"}
CONTAINS = {
    "contextName": "region",
    "operator": "STR_CONTAINS",
    "values": [f"{'a' * 90}{n:08}" for n in range(100)],
}
SEALED_ONE = {"from": HERE, "to": HERE, "projects": ["sealed"], "contexts": {"synthetic": 5}}
MOMENTS = (
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01", "2026-02-30T00:00:00Z", "now", "", None, 0, -1, [],
    "2026-11-21T09:00:00+99:00", "2026-11-21T09:00:00.1234567890123Z", "1" * 500, "0000-00-00T00:00:00Z",
    "1900-01-01T00:00:00-15:59", "2026-11-21T09:00:00\0",
)  # fmt: skip
DRAFTS: tuple[Any, ...] = (
    [], "x", {}, {"flag": None}, {"flag": "sealed-flag", "enabled": True}, {"flag": "\0"}, {"strategies": []},
    {"flag": "dark-theme", "strategies": [{}]}, {"flag": "dark-theme", "strategies": [None] * 500},
    {"flag": "dark-theme", "strategies": [{"name": "default", "id": "00000000-0000-0000-0000-000000000000"}]},
    {"flag": "dark-theme", "strategies": [{"name": "default", "segments": [2**63, -1]}]},
    {"flag": "dark-theme", "segments": [{"id": 2**63, "constraints": []}]},
    {"flag": "dark-theme", "dependencies": [{"feature": "sealed-flag"}]},
    {"flag": "dark-theme", "dependencies": [{"feature": "dark-theme"}]},
    {"flag": "dark-theme", "variants": [{"name": "a", "weight": 10**30}]},
    {"flag": "dark-theme", "archived": True}, {"flag": "checkout-redesign", "archived": True},
    {"segments": [{"id": 1, "constraints": [EVIL] * 30}]},
)  # fmt: skip
CONTEXTS: tuple[Any, ...] = (
    None, [], {}, {"explicit": 7}, {"explicit": [None]}, {"explicit": [{"properties": []}]}, {"synthetic": -1},
    {"synthetic": 10**9}, {"synthetic": 1, "seed": 2**70}, {"saved": ["Sealed"]}, {"saved": ["\0"] * 900},
    {"csv": "\0"}, {"csv": "a" * 400_000}, {"csv": '"'}, {"generated": "x"}, {"synthetic": 5, "fixed": {"properties": 7}},
)  # fmt: skip
GZIP = b"\x1f\x8b"
TABLES = (
    b"", b"\0", b"\xff\xfe", b"userId", b"userId\n", b'userId\n"', b"userId,userId\n1,2\n", b",\n,\n", b"\n" * 90_000,
    b"userId\n" + b"x" * 400_000, b",".join(b"c%d" % n for n in range(3_000)) + b"\n", b"userId\n=cmd|' /C calc'!A0\n",
    b"PK\x03\x04" + b"\0" * 500, GZIP + b"\0" * 500,
)  # fmt: skip


def draft(*constraints: Any) -> dict[str, Any]:
    """As full as a flag can be."""
    strategies = [{"name": "default", "constraints": constraints[0:1] * 30} for _ in range(30)]
    return HERE | {"draft": {"flag": "dark-theme", "strategies": strategies}}


def compared(flags: int, **more: Any) -> dict[str, Any]:
    return imported([f"compared-{number}" for number in range(flags)]) | more


# What, with which key, where, and the body.
COSTLY: dict[str, tuple[str, str, Any]] = {
    "10,000 contexts compared": ("viewer", COMPARE, {"from": HERE, "to": HERE, "contexts": MANY}),
    "a regular expression compared": ("viewer", COMPARE, {"from": HERE, "to": draft(EVIL), "contexts": MANY}),
    "letters compared": ("viewer", COMPARE, {"from": HERE, "to": draft(CONTAINS), "contexts": MANY}),
    "the past compared": (
        "viewer", COMPARE, {"from": HERE | {"at": "2026-01-01T00:00:00Z"}, "to": HERE, "contexts": SAMPLE},
    ),
    "2,000 flags compared": ("admin", PLANNED, compared(2_000, contexts={"synthetic": 500, "seed": 1})),
    "an import's entries compared": ("admin", PLANNED, compared(20_000, contexts={"synthetic": 1})),
    "10,000 contexts in CSV": (
        "admin", PLANNED,
        compared(1, contexts={"csv": "userId,region\n" + "".join(f"{n},{'ab' * 40}\n" for n in range(10_000))}),
    ),
    "expectations of everything": ("viewer", CHECK, {}),
    "expectations of a draft": ("viewer", CHECK, {"projects": ["checkout"], "asIf": draft(EVIL)}),
}  # fmt: skip


def odd_tables() -> Iterator[Call]:
    for table in TABLES:
        yield Call("viewer", "POST", f"{USERS}?environment=production", table, {"Content-Type": "text/csv"})
        if not table.startswith(
            GZIP
        ):  # those are read in a process that gives way to everybody else: costs.py
            for kind in ("text/csv", "application/x-ndjson", "application/gzip"):
                yield Call("viewer", "POST", ASSIGNED, table, {"Content-Type": kind})
        for at in MOMENTS:
            affected = table.decode(errors="replace")[:2_000]
            asked = {"from": at, "to": "2026-11-21T00:00:00Z", "affected": affected}
            yield Call("viewer", "POST", INCIDENTS, HERE | asked)


def odd() -> Iterator[Call]:
    for at in MOMENTS:
        yield Call(
            "viewer", "POST", COMPARE, {"from": HERE | {"at": at}, "to": HERE, "contexts": {"synthetic": 1}}
        )
        yield Call(
            "viewer", "POST", f"{ADMIN}/playground", HERE | {"projects": ["*"], "context": {}, "at": at}
        )
    for edit in DRAFTS:
        to = HERE | {"draft": edit}
        yield Call("outsider", "POST", COMPARE, {"from": HERE, "to": to, "contexts": {"synthetic": 1}})
        yield Call("viewer", "POST", COMPARE, {"from": HERE, "to": to, "contexts": {"synthetic": 1}})
        yield Call("viewer", "POST", CHECK, {"asIf": to})
    for contexts in CONTEXTS:
        for key in ("viewer", "outsider"):
            yield Call(key, "POST", COMPARE, {"from": HERE, "to": HERE, "contexts": contexts})
        yield Call("editor", "POST", PLANNED, compared(2, contexts=contexts))
        yield Call("editor", "POST", SAVED, {"name": "odd", "context": contexts, "expectations": contexts})
    yield from odd_tables()
    for body in (b"", b"[]", b"null", b"7", b'"x"', b"{}", b'{"from":1e999}', b"[" * 5_000):
        for path in (COMPARE, CHECK, PLANNED, SAVED):
            yield Call("viewer", "POST", path, body)


def of_others() -> Iterator[Call]:
    """Somebody with a role in another project asks for what is in "sealed"."""
    refused = range(400, 405)
    past = HERE | {"at": "2026-11-21T00:00:00Z"}
    for body in (SEALED_ONE, SEALED_ONE | {"from": past}, SEALED_ONE | {"flag": "sealed-flag"}):
        yield Call("outsider", "POST", COMPARE, body, statuses=refused)
    yield Call("outsider", "POST", CHECK, {"projects": ["sealed"]})
    yield Call("outsider", "POST", CHECK, {"projects": ["*"]})
    yield Call("outsider", "GET", SAVED)
    for saved in range(1, 5):
        yield Call("outsider", "GET", f"{SAVED}/{saved}")
    yield Call("outsider", "GET", f"{SAVED}?project=sealed", statuses=refused)
    yield Call("outsider", "POST", f"{ADMIN}/playground", HERE | {"projects": ["*"], "context": {}})
    yield Call("outsider", "POST", f"{ADMIN}/playground", HERE | {"projects": ["sealed"], "context": {}})
    into = compared(1, contexts={"saved": ["Sealed"]})
    yield Call("outsider", "POST", PLANNED, into | {"project": "sealed"}, statuses=refused)
    yield Call("outsider", "POST", PLANNED, into | {"project": "legacy-portal"})
    csv = {"Content-Type": "text/csv"}
    yield Call(
        "outsider", "POST", f"{USERS}?environment=production&project=sealed", b"userId\n1\n", csv, refused
    )
    yield Call("outsider", "POST", f"{USERS}?environment=production", b"userId\n1\n", csv)
    for query in ("flag=sealed-flag", "flag=dark-theme&flag=sealed-flag", "flag=sealed-flag&summary=true"):
        path = f"{ADMIN}/playground/assignments?environment=production&{query}"
        yield Call("outsider", "POST", path, b"userId,time\n1,2026-11-21\n", csv, refused)
    sealed = f"{ADMIN}/projects/sealed/features/sealed-flag/analyses"
    asked = "environment=production&name=x&mean=n&from=2026-11-01T00:00:00Z&to=2026-11-21T00:00:00Z"
    yield Call("outsider", "POST", f"{sealed}?{asked}", b"userId,time,n\n1,2026-11-21,1\n", csv, refused)
    yield Call("outsider", "GET", sealed, statuses=refused)
    window = {"from": "2020-01-01T00:00:00Z", "to": past["at"]}
    yield Call(
        "outsider", "POST", INCIDENTS, HERE | window | {"affected": "userId\n1\n", "others": "userId\n2\n"}
    )
    yield Call("outsider", "GET", USERS)
    yield Call("outsider", "GET", f"{ADMIN}/events?project=sealed")
    yield Call(
        "outsider",
        "POST",
        f"{ADMIN}/projects/sealed/features/sealed-flag/revert",
        {"at": past["at"]},
        statuses=refused,
    )


def forget_runs(verdict: Verdict) -> None:
    """Deletes the runs of users that the table made."""
    for key in ("viewer", "outsider"):
        _, answer = verdict.send(Call(key, "GET", USERS))
        for run in json.loads(answer)["runs"]:
            verdict.send(Call(key, "DELETE", f"{USERS}/{run['id']}"))


def attacks(target: Installation, seconds: float, quiet: float) -> Iterator[Result]:
    each = seconds / (len(COSTLY) + 3)
    made = {
        name: partial(repeat, target, (key, "POST", path, json.dumps(body).encode()), each)
        for name, (key, path, body) in COSTLY.items()
    }
    table = b"userId,region\n" + b"".join(b"%d,%b\n" % (n, b"ab" * 200) for n in range(100_000))
    made["files of 100,000 users"] = partial(send_users, target, table, each)
    yield from beside_each(target, quiet, made, PATIENCE)
    yield judge("odd moments, drafts and contexts", target, odd(), each, then=forget_runs)
    yield judge("what others compare and expect", target, of_others(), each, then=forget_runs)


def send_users(target: Installation, table: bytes, seconds: float) -> Attacked:
    """As many files as are taken, and then the next."""
    found = Attacked()
    attack = ("viewer", "POST", f"{USERS}?environment=production", table)
    repeat(target, attack, seconds, found, **{"Content-Type": "text/csv"})
    forget_runs(Verdict(target))
    return found

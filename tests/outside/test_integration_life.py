"""The recorded life of the reference's integrations: its API's answers, and each request that a receiver got.

``integration_differences.toml`` lists each difference with its reason. An entry that no longer applies fails the test.
"""

import gzip
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.compatibility.life import differences
from tests.support.cast import client, make_token, make_user
from tests.support.paths import SHARED
from tests.support.receiver import Receiver, deliver, receiver

__all__ = ["receiver"]
RECORDED = json.loads(gzip.decompress((SHARED / "vectors" / "integrations" / "life.json.gz").read_bytes()))
THEMES = tomllib.loads((Path(__file__).parent / "integration_differences.toml").read_text())
RECEIVER = "http://127.0.0.1:4299"
STATUSES = {"/fail": 500, "/redir": 302, "/newrelic": 500}
UNLEASH = "https://flags.example.com"
IDS = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@pytest.mark.django_db(transaction=True)
def test_a_life_differs_in_nothing_but_what_is_listed(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.INTEGRATION_NAME = "Unleash"
    monkeypatch.setattr("flagadmin.core.server.background_tasks.public_url", UNLEASH)
    monkeypatch.setattr("integrations.deliveries.attempts.FIRST_DELAY", 0.0)
    _restart_numbering()
    receiver.answer = lambda path, count: (STATUSES.get(path, 200), {"Location": "/"}, b"")
    found = sorted(set(_live(receiver)) | set(_arrived(receiver)))
    listed = [line for lines in THEMES.values() for line in lines]
    unexplained = [line for line in found if not any(_matches(entry, line) for entry in listed)]
    assert not unexplained, "\n".join(unexplained)
    settled = [entry for entry in listed if not any(_matches(entry, line) for line in found)]
    assert not settled, "no longer different, take it out:\n" + "\n".join(settled)


def _restart_numbering() -> None:
    """The recorded requests name integrations and segments by their numbers in an empty database."""
    with connection.cursor() as cursor:
        for table in ("integrations_integration", "projects_segment"):
            cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART")


def _matches(entry: str, line: str) -> bool:
    return bool(re.match(".*".join(map(re.escape, entry.split("*"))) + r"( |$)", line))


def _live(receiver: Receiver) -> Iterator[str]:
    admin = client(make_token("personal", user=make_user("admin", id=4711, root_role=1)))
    ids: dict[str, str] = {}
    for step in RECORDED["steps"]:
        label, answer = step["label"], step["answer"]
        if label == "addon deprecated slack":  # it is not deprecated here
            continue
        path = step["path"]
        body = json.dumps(step.get("body")).replace(RECEIVER, receiver.url)
        for old, new in ids.items():
            path, body = path.replace(old, new), body.replace(old, new)
        data = body if step.get("body") is not None else ""
        response = admin.generic(step["method"], path, data, content_type="application/json")
        if response.status_code != step["status"]:
            yield f"{label}: status {response.status_code} instead of {step['status']}"
            continue
        ours = (
            json.loads(response.content.decode().replace(receiver.url, RECEIVER))
            if response.content
            else None
        )
        if isinstance(answer, dict) and isinstance(ours, dict) and IDS.fullmatch(str(answer.get("id"))):
            ids[answer["id"]] = ours["id"]
        if not label.startswith("addon"):
            deliver()
        elif isinstance(answer, dict):
            answer.pop("providers", None)
            for document in filter(None, (answer, ours)):
                document.get("addons", []).sort(key=lambda addon: addon["id"])
            if "integrationEvents" in answer:
                answer, ours = _newest(answer), _newest(ours)
            yield from (f"{label}: {line}" for line in differences(_plain(answer), _plain(ours), ""))


def _newest(answer: Any) -> list[str]:
    """What the log says of the last delivery, whichever event that was."""
    return [f"{event['state']} {event['stateDetails']}" for event in answer["integrationEvents"][:1]]


def _arrived(receiver: Receiver) -> Iterator[str]:
    for path in sorted({request["path"] for request in RECORDED["sent"]}):
        recorded = [request for request in RECORDED["sent"] if request["path"] == path]
        ours = receiver.at(path)
        if STATUSES.get(path, 200) >= 500:
            recorded, ours = recorded[:1], ours[:1]
        yield from _requests(path, recorded, ours)


def _requests(path: str, recorded: list[dict[str, Any]], ours: list[Any]) -> Iterator[str]:
    waiting = [(dict(request.headers), json.loads(request.body)) for request in ours]
    for request in recorded:
        body = json.loads(request["body"])
        name = _name(body)
        same = [one for one in waiting if _name(one[1]) == name]
        if not same:
            yield f"{path}: {name} does not arrive"
            continue
        match = min(same, key=lambda one: len(list(differences(_plain(body), _plain(one[1]), ""))))
        waiting.remove(match)
        for header, value in request["headers"].items():
            if (
                header.lower() not in ("host", "connection", "content-length")
                and match[0].get(header.lower()) != value
            ):
                yield f"{path}: header {header} is {match[0].get(header.lower())}"
        yield from (f"{path}: {name}: {line}" for line in differences(_plain(body), _plain(match[1]), ""))
    yield from (f"{path}: {_name(body)} is extra" for _, body in waiting)


def _plain(body: Any) -> Any:
    """Without ids, times and addresses of pages, which are those of each installation."""
    text = json.dumps(
        body | {"json": json.loads(body["json"])} if isinstance(body, dict) and "json" in body else body
    )
    text = re.sub(r"https://flags\.example\.com[^)\s\"\\]*", "PAGE", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", IDS.sub("ID", text))
    return json.loads(
        re.sub(
            r'(\\*"(?:id|groupId|createdByUserId|createdAt)\\*": ?)(-?\d+|\\*"[^"\\]*\\*")', r"\1null", text
        )
    )


def _name(body: dict[str, Any]) -> str:
    """What the request is about, to find the one that is compared with it."""
    if "attachments" in body:
        items = body["attachments"][0]["content"]["body"][0]["items"]
        return f"{items[2]['facts'][1]['value']} {_page(items[1]['text'])}"
    if "text" in body:
        return _page(body["text"]).removeprefix("%%% \n ").removesuffix(" \n %%% ")
    kind = body.get("type") or body.get("t")
    event = json.loads(body["json"]) if "json" in body else body
    return f"{kind} {event.get('featureName')} {event.get('environment')}"


def _page(text: str) -> str:
    return re.sub(r"\]\([^)]*\)", "]", text)

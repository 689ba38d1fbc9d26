"""Condenses the recorded life to ``tests/vectors/life.json``: requests, statuses and the shapes of the answers.

``python -m tests.compatibility.condense`` writes the file anew from the recording beside the checkout.
What differs from run to run becomes a placeholder; so do sentences, which are the reference's own.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.paths import ROOT, SHARED

RECORDING = SHARED / "vectors" / "life.json.gz"
STEPS = SHARED / "vectors" / "life_steps.py"
CONDENSED = ROOT / "tests" / "vectors" / "life.json"  # read by tests.compatibility.life

NOW = "{now}"
# Neither side can tell these the same: what only one server's set-up has, and what depends on the time it took.
ANY = "<any>"
MASKED = {"secret": "<text>", "token": "<text>", "alias": ANY, "clientIp": ANY, "etag": ANY}
NUMBERED = re.compile(r"(^i|I)ds?$|^segments$")
IDENTIFIER = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*")
SENTENCE = re.compile(r"\S+ .*|https?://(?!example).*", re.DOTALL)
EACH = "<each>"
# Long lists of what that product offers of its own.
STATUS_ONLY = {"addons", "ui-config", "instance-admin/statistics", "logout"}


class Found:
    """Stands for an answer while the steps are read: notes which member of it is kept for later requests."""

    def __init__(self, path: tuple[str | int, ...] = ()) -> None:
        self.path = path

    def __getitem__(self, key: str | int) -> "Found":
        return Found((*self.path, key))


def read_steps() -> list[dict[str, Any]]:
    """The requests, from the program that recorded them."""
    steps: list[dict[str, Any]] = []

    def step(
        what: str,
        method: str,
        path: str,
        body: Any = None,
        cap: dict[str, Callable[[Found], Found]] | None = None,
        auth: str | None = "{key}",
        headers: dict[str, str] | None = None,
        ignore: tuple[str, ...] = (),
    ) -> None:
        auth = "{key}" if auth == "__" else auth
        kept = {name: list(find(Found()).path) for name, find in (cap or {}).items()}
        parts = {"body": body, "keep": kept, "headers": headers, "ignore": ignore}
        steps.append(
            {"what": what, "method": method, "path": path, "auth": auth}
            | {name: value for name, value in parts.items() if value not in (None, {}, ())}
        )

    class OneSide:
        """Requests of one side only, which make up for what only one side did. We send them all."""

        def req(self, method: str, path: str, body: Any = None) -> None:
            steps.append({"method": method, "path": path, "auth": "{key}", "body": body})

    class Clock:
        sleep = staticmethod(lambda seconds: None)
        strftime = staticmethod(lambda *args: NOW)
        gmtime = staticmethod(lambda: None)

    names = {"step": step, "sql": lambda text: None, "O": OneSide(), "R": OneSide(), "time": Clock}
    exec(STEPS.read_text(), names)  # our own recording program
    return steps


def masked(value: Any, ignore: tuple[str, ...] = (), path: str = "", key: str = "") -> Any:
    if isinstance(value, dict):
        inner = {name: f"{path}.{name}" for name in value}
        return {
            name: masked(value[name], ignore, at, name) for name, at in inner.items() if not _left(at, ignore)
        }
    if isinstance(value, list):
        if value and (_left(f"{path}[", ignore) or key in ("data", "events")) and isinstance(value[0], dict):
            return {EACH: sorted(set.intersection(*(set(item) for item in value)))}
        return [masked(item, ignore, f"{path}[]", key) for item in value]
    if key in MASKED and value is not None:
        return MASKED[key]
    if isinstance(value, str):
        return _placeholder(value)
    return "<id>" if type(value) is int and NUMBERED.search(key) else value


def _left(path: str, ignore: tuple[str, ...]) -> bool:
    return any(re.search(pattern, path) for pattern in ignore)


def _placeholder(text: str) -> str:
    for pattern, placeholder in ((MOMENT, "<time>"), (IDENTIFIER, "<id>"), (SENTENCE, "<text>")):
        if pattern.fullmatch(text):
            return placeholder
    return text


def condensed() -> Iterator[dict[str, Any]]:
    recorded = iter(json.loads(gzip.decompress(RECORDING.read_bytes())))
    for step in read_steps():
        if "what" in step:
            record = next(recorded)
            assert (step["what"], step["path"]) == (record["what"], record["path"])
            step |= {"status": record["status"], "answer": _answer(record, step.pop("ignore", ()))}
        yield step


def _answer(record: dict[str, Any], ignore: tuple[str, ...]) -> Any:
    """Of an error only its name counts: messages are each server's own. Without a body anything will do."""
    answer = record["answer"]
    if answer is None or record["what"] in STATUS_ONLY:
        return ANY
    if record["status"] >= 400:
        return {"name": answer["name"]} if isinstance(answer, dict) and "name" in answer else ANY
    return masked(answer, ignore)


def written() -> str:
    """The file: a request a line."""
    lines = ",\n".join(json.dumps(step) for step in condensed())
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    CONDENSED.write_text(written())

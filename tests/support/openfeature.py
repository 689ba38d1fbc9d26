"""What each of OpenFeature's own providers is asked, and what it must give the application."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from projects.models import Flag
from tests.support.flags import depend, make_flag
from tests.support.node_packages import installed
from tests.support.ofrep import constraint, rollout, variant
from tests.support.paths import ROOT

USER = {"targetingKey": "2", "country": "NO"}
ABROAD = {"targetingKey": "2", "country": "SE"}


class Asked(NamedTuple):
    """An evaluation, and the details that the application must get; ``type`` as Python's SDK has it."""

    type: str
    key: str
    default: Any
    context: dict[str, Any]
    value: Any
    reason: str
    variant: str | None = None
    error: str | None = None


class Answer(NamedTuple):
    """What a flag has for the context: an application that asks for another type gets its default."""

    value: Any = None
    reason: str = "STATIC"
    variant: str = "enabled"
    context: dict[str, Any] = USER
    error: str | None = None


OFF = Answer(False, "DISABLED", "disabled")
ANSWERS = {
    "on": Answer(True, context={}),
    "off": OFF,
    "norway": Answer(True, "TARGETING_MATCH"),
    "half": Answer(True, "SPLIT"),
    "strategy-off": Answer(False, "STATIC", "disabled"),
    "color": Answer("#00f", variant="blue"),
    "colors": Answer("blue,red", variant="both"),
    "layout": Answer({"columns": 2}, variant="two"),
    "limit": Answer(3, variant="three"),
    "ratio": Answer(0.5, variant="half"),
    "whole": Answer(3.0, variant="three"),
    "mixed": Answer(3, variant="three"),
    # None of their payloads applies: whether they are on.
    "no-color": OFF,
    "no-colors": OFF,
    "no-layout": OFF,
    "no-limit": OFF,
    "bare": Answer(True, variant="control"),
    "bare-limit": Answer(True, variant="control"),
    "bare-mixed": Answer(True, variant="control"),
    "no-weight": Answer(True),
    "limit-abroad": Answer(True, "TARGETING_MATCH"),
    "limit-below-off": Answer(False, "TARGETING_MATCH", "disabled"),
    "missing": Answer(error="FLAG_NOT_FOUND"),
    "archived": Answer(error="FLAG_NOT_FOUND"),
    "by-user": Answer(error="TARGETING_KEY_MISSING", context={}),
    "no-number": Answer(error="PARSE_ERROR"),
}
TYPES: dict[str, type] = {"boolean": bool, "string": str, "integer": int, "float": float, "object": dict}
ONE_TYPE_IN_JAVASCRIPT = (("integer", float), ("float", int))


def ask(kind: str, key: str) -> Asked:
    """The question for a flag, with a default that no flag has."""
    answer = ANSWERS[key]
    default = {
        "boolean": answer.value is not True,
        "string": "red",
        "integer": 7,
        "float": 1.5,
        "object": {"columns": 9},
    }[kind]
    error = answer.error or ("" if type(answer.value) is TYPES[kind] else "TYPE_MISMATCH")
    if error:
        return Asked(kind, key, default, answer.context, default, "ERROR", None, error)
    return Asked(kind, key, default, answer.context, answer.value, answer.reason, answer.variant)


ASKED = (
    *(
        ask(kind, key)
        for key, answer in ANSWERS.items()
        for kind in TYPES
        if (kind, type(answer.value)) not in ONE_TYPE_IN_JAVASCRIPT
    ),
    Asked("boolean", "norway", True, ABROAD, False, "TARGETING_MATCH", "disabled"),
)


def make_flags() -> None:
    """The flags that are asked for, in project default and environment development."""

    def give(name: str, *variants: dict[str, Any], **fields: Any) -> Flag:
        return make_flag(name, "default", **{"enabled": True, "variants": variants} | fields)

    control = variant("control")
    blue, both = variant("blue", "string", "#00f"), variant("both", "csv", "blue,red")
    two, three = variant("two", "json", '{"columns": 2}'), variant("three", "number", "3")
    abroad = {"constraints": [constraint("country", "SE")]}
    give("on")
    give("off", enabled=False)
    give("archived", archived=True)
    give("norway", strategies=[{"constraints": [constraint("country", "NO")]}])
    give("half", strategies=[rollout(50)])
    give("strategy-off", strategies=[{"disabled": True}])
    give("by-user", strategies=[rollout(50, "userId")])
    give("color", blue)
    give("colors", both)
    give("layout", two)
    give("limit", three)
    give("ratio", variant("half", "number", "0.5"))
    give("whole", variant("three", "number", "3.0"))
    give("mixed", three, blue | {"weight": 0})
    give("no-color", blue, enabled=False)
    give("no-colors", both, enabled=False)
    give("no-layout", two, enabled=False)
    give("no-limit", three, enabled=False)
    give("bare", control, blue | {"weight": 0})
    give("bare-limit", control, three | {"weight": 0})
    give("bare-mixed", control, three | {"weight": 0}, blue | {"weight": 0})
    give("no-weight", three | {"weight": 0})
    give("limit-abroad", strategies=[rollout(100, variants=[three], **abroad), {}])
    depend(give("limit-below-off", three), Flag.objects.get(name="off"))
    give("no-number", variant("ten", "number", "ten"))
    give("new-checkout", strategies=[rollout(90)])


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def other_origin() -> Iterator[str]:
    """The URL of a server that is not ours, with the page and the packages of tests/clients/openfeature."""
    folder = installed("openfeature")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


EXAMPLE_SAYS = "userId 42 is in bucket 81, 90 % rollout"


def programs(language: str) -> list[str]:
    """The blocks of docs/openfeature.md in this language."""
    text = (ROOT / "docs" / "openfeature.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def example(language: str, url: str, token: str) -> str:
    """The first program in docs/openfeature.md in this language, with another server and token."""
    program = programs(language)[0]
    assert "https://flags.example.com" in program
    assert "TOKEN" in program
    return program.replace("https://flags.example.com", url).replace("TOKEN", token)

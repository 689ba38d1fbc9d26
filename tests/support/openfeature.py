"""What each of OpenFeature's own providers is asked, and what it must give the application."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.support.flags import make_flag
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


ASKED = (
    Asked("boolean", "on", False, {}, True, "STATIC", "enabled"),
    Asked("boolean", "off", True, USER, False, "DISABLED", "disabled"),
    Asked("boolean", "norway", False, USER, True, "TARGETING_MATCH", "enabled"),
    Asked("boolean", "norway", True, ABROAD, False, "TARGETING_MATCH", "disabled"),
    Asked("boolean", "half", False, USER, True, "SPLIT", "enabled"),
    Asked("string", "colour", "red", USER, "#00f", "STATIC", "blue"),
    Asked("integer", "limit", 1, USER, 3, "STATIC", "three"),
    Asked("float", "ratio", 1.0, USER, 0.5, "STATIC", "half"),
    Asked("float", "whole", 1.0, USER, 3.0, "STATIC", "three"),
    Asked("object", "layout", {}, USER, {"columns": 2}, "STATIC", "two"),
    Asked("boolean", "missing", True, USER, True, "ERROR", None, "FLAG_NOT_FOUND"),
    Asked("boolean", "archived", True, USER, True, "ERROR", None, "FLAG_NOT_FOUND"),
    Asked("string", "on", "red", USER, "red", "ERROR", None, "TYPE_MISMATCH"),
    Asked("boolean", "colour", False, USER, False, "ERROR", None, "TYPE_MISMATCH"),
    Asked("boolean", "no-colour", True, USER, False, "DISABLED", "disabled"),
    Asked("string", "no-colour", "red", USER, "red", "ERROR", None, "TYPE_MISMATCH"),
    Asked("object", "no-layout", {"columns": 1}, USER, {"columns": 1}, "ERROR", None, "TYPE_MISMATCH"),
    Asked("boolean", "bare", False, USER, True, "STATIC", "control"),
    Asked("boolean", "by-user", True, {}, True, "ERROR", None, "TARGETING_KEY_MISSING"),
)
# Flags of numbers that are off: the default in the code, and no error.
NO_INTEGER = Asked("integer", "no-limit", 5, USER, 5, "DISABLED", "disabled")
NO_FLOAT = Asked("float", "no-limit", 1.5, USER, 1.5, "DISABLED", "disabled")


def make_flags() -> None:
    """The flags that are asked for, in project default and environment development."""

    def give(name: str, *variants: dict[str, Any], **fields: Any) -> None:
        make_flag(name, "default", **{"enabled": True, "variants": variants} | fields)

    give("on")
    give("off", enabled=False)
    give("archived", archived=True)
    give("norway", strategies=[{"constraints": [constraint("country", "NO")]}])
    give("half", strategies=[rollout(50)])
    give("by-user", strategies=[rollout(50, "userId")])
    give("colour", variant("blue", "string", "#00f"))
    give("no-colour", variant("blue", "string", "#00f"), enabled=False)
    give("no-layout", variant("two", "json", '{"columns": 2}'), enabled=False)
    give("no-limit", variant("three", "number", "3"), enabled=False)
    give("bare", variant("control"), variant("blue", "string", "#00f", 0))
    give("limit", variant("three", "number", "3"))
    give("ratio", variant("half", "number", "0.5"))
    give("whole", variant("three", "number", "3.0"))
    give("layout", variant("two", "json", '{"columns": 2}'))
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


def example(language: str, url: str, token: str) -> str:
    """The program in docs/openfeature.md in this language, with another server and token."""
    text = (ROOT / "docs" / "openfeature.md").read_text()
    [program] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert "https://flags.example.com" in program
    assert "TOKEN" in program
    return program.replace("https://flags.example.com", url).replace("TOKEN", token)

"""The context to evaluate with: what a client says, with what the server knows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from playground.engine.context import Context, format_time


def make_context(fields: Mapping[str, Any], *, environment: str, address: str, now: datetime) -> Context:
    """The context to evaluate with. Its environment is the token's, whatever the client says. ``fields`` and their
    properties are strings."""
    document = {"remoteAddress": address, "appName": "", **fields, "environment": environment}
    return Context.of_strings(document, now=format_time(now))

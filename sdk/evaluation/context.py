"""The context to evaluate with: what a client says, with what the server knows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from playground.engine.context import Context


def make_context(fields: Mapping[str, Any], *, environment: str, address: str, now: datetime) -> Context:
    """The context to evaluate with. Its environment is the token's, whatever the client says."""
    defaults = {"remoteAddress": address, "appName": ""}
    return Context({**defaults, **fields, "environment": environment}).at(now)

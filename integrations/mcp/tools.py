"""All tools, and how they are called. Their names are stable: agents are told them in prompts."""

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import APIException

from flagadmin.core.change_checks import Refusal
from flagadmin.core.errors import AppError
from flagadmin.core.http.error_responses import as_app_error, log_and_record
from integrations.mcp import change_tools, comparison_tools, connect_tool, flag_tools, stale_tool
from integrations.mcp.answers import MAX_BYTES, MAX_BYTES_ASKED, render_answer
from integrations.mcp.protocol import InvalidParams
from integrations.mcp.tool import Call, Tool
from sdk.schemas import read

MAX_DETAILS = 10
_REFUSALS = (AppError, APIException, Refusal)
TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in [
        *flag_tools.TOOLS,
        *comparison_tools.TOOLS,
        *change_tools.TOOLS,
        *stale_tool.TOOLS,
        *connect_tool.TOOLS,
    ]
}


def list_tools() -> list[dict[str, Any]]:
    return [tool.document() for tool in TOOLS.values()]


def call_tool(call: Call, name: Any, arguments: Any) -> dict[str, Any]:
    """Calls a tool and returns the result. Wrong arguments, and refusals, are results that say so: models read them.

    Raises InvalidParams for a tool that does not exist.
    """
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        raise InvalidParams(f"There is no such tool. There are: {', '.join(TOOLS)}.")
    arguments = {} if arguments is None else arguments
    wants_more = isinstance(arguments, dict) and arguments.get("limit") is not None
    try:
        answer = tool.run(call, read(tool.arguments, arguments))
        is_error = False
    except _REFUSALS as error:
        answer, is_error = _describe(as_app_error(error), error), True
    text = render_answer(answer, max_bytes=MAX_BYTES_ASKED if wants_more else MAX_BYTES)
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _describe(error: AppError, cause: Exception) -> dict[str, Any]:
    record = log_and_record(error, cause)
    details = record.get("details", [])[:MAX_DETAILS]
    return {"error": record["name"], "message": record["message"]} | ({"details": details} if details else {})

"""An operation's call as a curl command and in Python, with the reader's own address."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import orjson

# Values for the parameters of a path.
PATH_VALUES = {
    "projectId": "default",
    "environment": "production",
    "featureName": "new-checkout",
    "name": "new-checkout",
    "key": "new-checkout",
    "parent": "checkout",
    "tagType": "simple",
    "value": "new-checkout",
    "typeId": "release",
}
_NAMES_OF = (
    ("/context/", "country"),
    ("/environments/", "production"),
    ("/metrics/applications/", "web-shop"),
    ("/metrics/instances/", "web-shop"),
    ("/tag-types/", "simple"),
    ("/strategies/", "flexibleRollout"),
)  # in a path that begins so, directly after /api/admin, the name is of something else than a flag


@dataclass(frozen=True, slots=True)
class Call:
    """``body`` is bytes of a file if ``media`` is not JSON; ``header`` is how the token is sent, "" without one."""

    method: str
    url: str
    media: str = ""
    body: Any = None
    header: str = "Authorization"


def make_path_value(path: str, name: str) -> str:
    if name == "name":
        values = (value for beginning, value in _NAMES_OF if path.startswith("/api/admin" + beginning))
        return next(values, PATH_VALUES[name])
    return PATH_VALUES.get(name, "1")


def fill_path(path: str, parameters: Iterable[Mapping[str, Any]]) -> str:
    """The path with an example of each parameter that is required."""
    required = [parameter for parameter in parameters if parameter.get("required")]
    query = {each["name"]: make_path_value(path, each["name"]) for each in required if each["in"] == "query"}
    filled = path
    for parameter in required:
        if parameter["in"] == "path":
            value = quote(make_path_value(path, parameter["name"]), safe="")
            filled = filled.replace(f"{{{parameter['name']}}}", value)
    return filled + (f"?{urlencode(query)}" if query else "")


def as_curl(call: Call) -> str:
    """Over several lines, quoted for a shell. The token is in the variable TOKEN."""
    lines = ["curl" if call.method == ("POST" if call.media else "GET") else f"curl -X {call.method}"]
    if call.header:
        lines.append(f'-H "{call.header}: $TOKEN"')
    if call.media:
        lines.append(f"-H 'Content-Type: {call.media}'")
    lines.append(shlex.quote(call.url))
    if call.media:
        lines.append(
            "--data-binary @users.csv" if call.body is None else f"-d {shlex.quote(as_json(call.body))}"
        )
    return " \\\n  ".join(lines)


def as_json(body: Any) -> str:
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def as_python(call: Call) -> str:
    """Writes the call with the standard library alone. The token is in the environment variable TOKEN."""
    headers = [f'"{call.header}": os.environ["TOKEN"]'] if call.header else []
    headers += [f'"Content-Type": "{call.media}"'] if call.media else []
    imports = [*(["json"] if call.media and call.body is not None else []), *(["os"] if call.header else [])]
    lines = [f"import {', '.join([*imports, 'urllib.request'])}", ""]
    data = ""
    if call.media and call.body is None:
        data = '    data=open("users.csv", "rb").read(),'
    elif call.media:
        lines.append(f"body = {_format_python(call.body)}")
        data = "    data=json.dumps(body).encode(),"
    lines += ["request = urllib.request.Request(", f'    "{call.url}",', f'    method="{call.method}",']
    lines += [data] if data else []
    lines += [f"    headers={{{', '.join(headers)}}},"] if headers else []
    return "\n".join([*lines, ")", "print(urllib.request.urlopen(request).read().decode())"])


def _format_python(value: Any, indent: str = "") -> str:
    """A JSON value as Python writes it, a member to a line."""
    deeper = indent + "    "
    if isinstance(value, dict) and value:
        members = (
            f"{deeper}{as_json(key)}: {_format_python(member, deeper)},\n" for key, member in value.items()
        )
        return "{\n" + "".join(members) + indent + "}"
    if isinstance(value, list) and value:
        return (
            "[\n" + "".join(f"{deeper}{_format_python(member, deeper)},\n" for member in value) + indent + "]"
        )
    return as_json(value) if isinstance(value, str) else repr(value)

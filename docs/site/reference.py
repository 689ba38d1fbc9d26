"""Writes the pages of docs/reference/generated/ from the code: operations of the API, commands, events, permissions.

They are written when the site is built and are not in the repository. A page is written only if it would change, so
that Sphinx reads it again only then.
"""

import json
import os
import re
import tempfile
from argparse import Action, _SubParsersAction
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DATA = tempfile.TemporaryDirectory(prefix="flagadmin-docs-")  # removed when the build ends
METHODS = ("get", "post", "put", "patch", "delete")
REFERENCE = "#/components/schemas/"
Schema = dict[str, Any]


def write_reference(app: Sphinx) -> None:
    start_django()
    folder = Path(app.srcdir, "docs", "reference", "generated")
    pages = {
        "commands": list_commands(),
        "events": list_events(),
        "permissions": list_permissions(),
    } | {f"api/{slug(tag)}": text for tag, text in describe_operations()}
    for stale in set(folder.rglob("*.md")) - {folder / f"{name}.md" for name in pages}:
        stale.unlink()
    for name, lines in pages.items():
        page, text = folder / f"{name}.md", "\n".join(lines) + "\n"
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def start_django() -> None:
    """Loads the product with default settings. No database is started or asked."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "flagadmin.settings"
    os.environ["FLAGADMIN_DATA_DIR"] = DATA.name
    import django

    django.setup()


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [header, tuple("---" for _ in header), *rows]
    return ["| " + " | ".join(one_line(cell) for cell in line) + " |" for line in lines] + [""]


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def list_events() -> list[str]:
    from flagadmin.core.audit.events import EventType

    rows = [(f"`{event}`", f"… {event.sentence}".replace("{", "*").replace("}", "*")) for event in EventType]
    return [
        "# Events\n",
        "The audit log and `GET /api/admin/events` have these events. Each change writes one event in its transaction,",
        "with its `type`, the person, the time, and the data before and after. The console shows a sentence.\n",
        *table(("Type", "Sentence"), rows),
    ]


def list_permissions() -> list[str]:
    from groups.permissions import BUILT_IN_ROLES, Permission

    def held_by(permission: Permission) -> str:
        return ", ".join(role.name for role in BUILT_IN_ROLES if permission in role.permissions) or "Admin"

    roles = [(role.name, role.type, role.description) for role in BUILT_IN_ROLES]
    rows = [
        (f"`{permission}`", permission.display, permission.scope, held_by(permission))
        for permission in Permission
    ]
    return [
        "# Roles and permissions\n",
        "A person has one root role and roles in projects, and the permissions of all of them together. An Admin has",
        "every permission. Under *Access*, *Roles*, you can define further roles.\n",
        "## Built-in roles\n",
        *table(("Role", "Kind", ""), roles),
        "## Permissions\n",
        "A permission of scope `environment` is held in a project, for one environment or for all of them.\n",
        *table(("Permission", "Allows to", "Scope", "Built-in roles that have it"), rows),
    ]


def list_commands() -> list[str]:
    from flagadmin.command import GROUPS

    lines = [
        "# Commands\n",
        "Run these commands as `.venv/bin/python manage.py COMMAND` in a checkout, or as `flagadmin COMMAND` if you",
        "installed the package. `flagadmin help COMMAND` shows the same descriptions.\n",
    ]
    for group, names in GROUPS.items():
        lines.append(f"## {group}\n")
        for name in names:
            lines += describe_command(name)
    return lines


def describe_command(name: str) -> list[str]:
    from flagadmin.command import CommandLine

    command = CommandLine(["flagadmin"]).fetch_command(name)
    parser = command.create_parser("flagadmin", name)
    lines = [f"### {name}\n", " ".join(str(command.help).split()) + "\n"]
    own = [action for action in parser._actions if is_own(action)]
    for action in own:
        if isinstance(action, _SubParsersAction):
            for verb, below in action.choices.items():
                rows = [describe_option(option) for option in below._actions if is_own(option)]
                lines += [f"`{name} {verb}`:\n", *table(("Option", "Meaning"), rows)]
    if rows := [describe_option(action) for action in own if not isinstance(action, _SubParsersAction)]:
        lines += table(("Option", "Meaning"), rows)
    return lines


# Every command has these from Django.
SHARED = {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color"}


def is_own(action: Action) -> bool:
    return action.dest not in SHARED | {"skip_checks"}


def describe_option(action: Action) -> tuple[str, str]:
    name = ", ".join(action.option_strings) or action.dest.upper()
    meaning = action.help or ""
    if action.choices:
        meaning += f" ({', '.join(map(str, action.choices))})"
    has_default = action.option_strings and action.default not in (None, False, [], "==SUPPRESS==")
    if has_default and str(action.default) not in meaning:
        meaning += f" (default: {action.default})"
    if action.required and action.option_strings:
        meaning += " (required)"
    return f"`{name}`", meaning.strip()


def describe_operations() -> Iterator[tuple[str, list[str]]]:
    """A page for each tag of the OpenAPI document."""
    from drf_spectacular.generators import SchemaGenerator

    document = json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str))
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if operation := operations.get(method):
                lines = describe_operation(document, method, path, operation)
                by_tag.setdefault(operation["tags"][0], []).extend(lines)
    for tag, lines in by_tag.items():
        begin = [
            f"# API: {tag}\n",
            "Errors have the form that the [API guide](../../../api.md#errors) describes.\n",
        ]
        yield tag, begin + lines + describe_records(document, lines)


def describe_operation(document: Schema, method: str, path: str, operation: Schema) -> list[str]:
    lines = [f"## {method.upper()} {path}\n"]
    summary, description = operation["summary"], operation.get("description", "").strip()
    # Most summaries are the first sentence of the description.
    texts = [description] if " ".join(description.split()).startswith(summary) else [summary, description]
    lines += [text + ("" if text[-1] in ".:|`)" else ".") + "\n" for text in texts if text]
    if parameters := [describe_parameter(parameter) for parameter in operation.get("parameters", [])]:
        lines += table(("Parameter", "In", "Type", "Meaning"), parameters)
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines += [f"**Body** (`{kind}`)\n", *describe_content(document, content)]
        break
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            lines.append(f"**Answer {status}**\n")
            for content in response.get("content", {}).values():
                lines += describe_content(document, content)
                break
    if refusals := [status for status in operation["responses"] if status >= "3"]:
        lines.append(f"Other answers: {', '.join(refusals)}.\n")
    return lines


def describe_records(document: Schema, lines: list[str]) -> list[str]:
    """The objects that these lines refer to, and those that they refer to."""
    described: dict[str, list[str]] = {}
    waiting = find_references(lines)
    while waiting:
        name = waiting.pop()
        if name not in described:
            described[name] = describe_content(document, {"schema": {"$ref": REFERENCE + name}})
            waiting += find_references(described[name])
    records = [line for name in sorted(described) for line in (f"### {name}\n", *described[name])]
    return ["## Records\n", *records] if records else []


def find_references(lines: list[str]) -> list[str]:
    return re.findall(r"\[(\w+)\]\(#\w+\)", "\n".join(lines))


def describe_parameter(parameter: Schema) -> tuple[str, ...]:
    name = f"`{parameter['name']}`" + (" (required)" if parameter.get("required") else "")
    return name, parameter["in"], type_of(parameter["schema"]), parameter.get("description", "")


def describe_content(document: Schema, content: Schema) -> list[str]:
    """The members of an object, and an example if the document has one."""
    schema = resolve(document, content["schema"])
    schema = resolve(document, schema.get("items", {})) if schema.get("type") == "array" else schema
    required = schema.get("required", [])
    rows = [
        (
            f"`{name}`" + (" (required)" if name in required else ""),
            type_of(member),
            member.get("description", ""),
        )
        for name, member in schema.get("properties", {}).items()
    ]
    lines = table(("Member", "Type", "Meaning"), rows) if rows else []
    for example in content.get("examples", {}).values():
        if isinstance(example.get("value"), dict | list):
            lines += ["```json", json.dumps(example["value"], indent=2, ensure_ascii=False), "```\n"]
            break
    return lines


def resolve(document: Schema, schema: Schema) -> Schema:
    while reference := schema.get("$ref"):
        schema = document["components"]["schemas"][reference.removeprefix(REFERENCE)]
    return schema


def type_of(schema: Schema) -> str:
    """In words: "string", "array of integer", "StrategyRecord", "one of on, off"."""
    if reference := schema.get("$ref"):
        name = str(reference.removeprefix(REFERENCE))
        return f"[{name}](#{name.lower()})"
    for kind in ("allOf", "oneOf", "anyOf"):
        if kind in schema:
            return " or ".join(dict.fromkeys(type_of(alternative) for alternative in schema[kind]))
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"] if value is not None)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {type_of(schema.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_reference)
    return {"parallel_read_safe": True}

"""A stored file of another product until its flags are imported, with the user's choices."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from flagadmin.core.errors import AppError, ValidationError
from importer.converting.changes import Users, count_changes, read_users
from importer.converting.convert import (
    Conversion,
    Exactness,
    Missing,
    Options,
    convert_file,
    is_export,
    recognize,
)
from importer.converting.files import ENDINGS, read_document, weigh
from importer.converting.strategies import Choice

MAX_LISTED = 200
"""Flags in a preview with notes: those that are not exact, or have percentages."""
BLANK = codecs.BOM_UTF8 + b" \t\r\n"
EXPORT_MEMBER = b'"featureStrategies"'
"""Every export contains it, so that large ones need not be parsed to recognize them."""


@dataclass(frozen=True, slots=True)
class StoredConversion:
    """``users`` is a CSV file, empty if users are generated."""

    product: str
    file_name: str
    content: bytes
    options: Options = field(default_factory=Options)
    users: bytes = b""
    users_name: str = ""

    @property
    def size(self) -> int:
        return weigh(self.content) + len(self.users)

    def dump(self) -> bytes:
        head = {
            "product": self.product,
            "fileName": self.file_name,
            "usersName": self.users_name,
            "length": len(self.content),
            "percentages": self.options.choice,
            "choices": self.options.choices,
            "missing": self.options.missing,
            "environment": self.options.environment,
        }
        return b"\n".join((orjson.dumps(head), self.content + self.users))

    @classmethod
    def load(cls, stored: bytes) -> StoredConversion:
        line, _, files = stored.partition(b"\n")
        head = orjson.loads(line)
        length = head["length"]
        options = Options(
            Choice(head["percentages"]),
            {name: Choice(choice) for name, choice in head["choices"].items()},
            Missing(head["missing"]),
            head["environment"],
        )
        content, users = files[:length], files[length:]
        return cls(head["product"], head["fileName"], content, options, users, head["usersName"])

    def choose(self, options: Options, users: bytes = b"", users_name: str = "") -> StoredConversion:
        """The same with other choices. Keeps the users if no others are given. Raises ValidationError."""
        chosen = replace(self, options=replace(options, environment=self.options.environment))
        if users:
            chosen = replace(chosen, users=users, users_name=users_name[:255])
        if not chosen.users and {options.choice, *options.choices.values()} & {Choice.KEEP, Choice.BOTH}:
            raise ValidationError.at("users", "to keep today's users, choose a CSV file of them")
        return chosen

    def convert(self) -> Conversion:
        """Raises ValidationError."""
        return self._convert(read_users(self.users) if self.users else None)

    def _convert(self, users: Users | None) -> Conversion:
        return convert_file(
            self.content,
            product=self.product,
            file_name=self.file_name,
            options=self.options,
            identifiers=users.identifiers if users else {},
        )

    def convert_with_report(self) -> tuple[Conversion, dict[str, Any]]:
        """The conversion, and the data for its preview. Raises ValidationError."""
        users = read_users(self.users) if self.users else None
        conversion = self._convert(users)
        changes = {name: change.document() for name, change in count_changes(conversion, users).items()}
        listed = [
            flag for flag in conversion.flags if flag.exactness is not Exactness.EXACT or flag.has_percentages
        ]
        report = conversion.document(changes, listed[:MAX_LISTED]) | {
            "unlisted": max(0, len(listed) - MAX_LISTED),
            "percentages": self.options.choice,
            "choices": dict(self.options.choices),
            "missing": self.options.missing,
            "usersName": self.users_name,
        }
        return conversion, report


def recognize_file(content: bytes, file_name: str) -> str:
    """The name of the file's product; "" if it is not a supported one.

    Raises ValidationError for a malformed YAML or TOML file, for an export in these formats, and for a state file of
    Unleash 4.
    """
    if EXPORT_MEMBER in content:
        return ""
    try:
        document = read_document(content, file_name)
    except AppError:
        if not file_name.lower().endswith(tuple(ending for ending in ENDINGS if ending != ".json")):
            return ""
        raise
    product = recognize(document)
    if not product and is_export(document) and not content.lstrip(BLANK).startswith(b"{"):
        raise ValidationError(
            "This is an export in YAML or TOML. Imports read exports in JSON: export it as JSON."
        )
    return product.name if product else ""

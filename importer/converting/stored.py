"""A file of another product as it is kept until its flags are imported, with what its reader has chosen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from flagadmin.core.errors import AppError, ValidationError
from importer.converting.changes import Users, count_changes, read_users
from importer.converting.convert import Conversion, Exactness, Missing, Options, convert_file
from importer.converting.files import ENDINGS, read_document
from importer.converting.recognize import recognize
from importer.converting.rollouts import Choice

MAX_LISTED = 200
"""Flags that are not exact, or have percentages, of which a preview has the notes."""
EXPORT_MEMBER = b'"featureStrategies"'
"""Every export has it, so that large ones need not be read for nothing."""


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
        return len(self.content) + len(self.users)

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
        """The same with other choices. The users stay if no others are given. Raises ValidationError."""
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
        """The conversion, and what its preview shows of it. Raises ValidationError."""
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
    """The name of the product whose file this is; "" if it is none that can be converted.

    Raises ValidationError for a malformed file whose name says that it is YAML or TOML: exports are neither.
    """
    if EXPORT_MEMBER in content:
        return ""
    try:
        product = recognize(read_document(content, file_name))
    except AppError:
        if not file_name.lower().endswith(tuple(ending for ending in ENDINGS if ending != ".json")):
            return ""
        raise
    return product.name if product else ""

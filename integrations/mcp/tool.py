"""Defines a tool and how it is called."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from flagadmin.core.change_checks.comments import MAX_LENGTH, tidy_comment
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from projects.models import Flag

Answer = dict[str, Any]
R = TypeVar("R")
MAX_LISTED, FEW = 100, 10


class Arguments(BaseModel):
    """The arguments of a tool. Subclasses' fields are the tool's input schema."""

    model_config = ConfigDict(extra="forbid", title="", str_max_length=100_000)


class ListArguments(Arguments):
    limit: int | None = Field(
        None, ge=1, le=MAX_LISTED, description=f"Default {FEW}. With it, the answer may be longer than 4 kB."
    )

    @property
    def most(self) -> int:
        return self.limit or FEW


class WriteArguments(Arguments):
    dry_run: bool = Field(True, description="True: only try it, and say what would happen. Nothing is saved.")
    comment: str = Field("", max_length=MAX_LENGTH, description="Why, for the audit log.")


@dataclass(frozen=True, slots=True)
class Call:
    """The caller of a tool, and the address of this server."""

    caller: Caller
    server: str


@dataclass(frozen=True, slots=True)
class Tool:
    """``is_destructive``: what it writes can take something from users. Tools that write have WriteArguments."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Call, Any], Answer]
    is_destructive: bool = False

    @property
    def is_read_only(self) -> bool:
        return not issubclass(self.arguments, WriteArguments)

    def document(self) -> dict[str, Any]:
        """As it is listed."""
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        for member in schema.get("properties", {}).values():
            member.pop("title", None)
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.is_read_only,
                "destructiveHint": self.is_destructive,
                "idempotentHint": self.is_read_only or self.is_destructive,
                "openWorldHint": False,
            },
        }


def perform(call: Call, arguments: WriteArguments, action: Callable[[], R]) -> R:
    """Calls an action as the API does. In a dry run it is undone, and so are what it would have told others.

    What the project checks at the end of a change is checked in a dry run too.
    """
    with changing(comment=tidy_comment(arguments.comment), skip_by=call.caller):
        return run_and_roll_back(action) if arguments.dry_run else action()


def done(arguments: WriteArguments, **members: Any) -> Answer:
    """The answer of a tool that writes."""
    said = "Nothing was saved. Call again with dry_run false to do it." if arguments.dry_run else "Saved."
    return {"dryRun": arguments.dry_run, "done": said, **members}


def find_flag(caller: Caller, name: str, *, archived: bool | None = None) -> Flag:
    """A flag of any project that the caller may read: names are unique. Raises ValidationError."""
    flags = Flag.objects.readable_by(caller).filter(name=name).select_related("project")
    flag = flags.first()
    if flag is None or (archived is not None and flag.is_archived != archived):
        state = " is archived" if flag else " not found. find_flags searches them"
        raise ValidationError.at("flag", f"flag {name[:100]}{state}.")
    return flag

"""Defines a tool and its calls."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field

from flagadmin.core.change_checks.comments import MAX_LENGTH, tidy_comment
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import ValidationError, clip
from flagadmin.core.http.request_bodies import ORJSON_OPTIONS
from groups.access import Caller
from projects.models import Flag

Answer = dict[str, Any]
R = TypeVar("R")
MAX_LISTED, FEW = 100, 10


class Arguments(BaseModel):
    """The arguments of a tool. Subclasses' fields are the tool's input schema."""

    model_config = ConfigDict(extra="forbid", title="", str_max_length=100_000, defer_build=True)

    @property
    def wants_more(self) -> bool:
        """Whether the caller has set the size of the answer, or asks for a single item."""
        return False


class ListArguments(Arguments):
    limit: int | None = Field(
        None, ge=1, le=MAX_LISTED, description=f"Default {FEW}. With it, the answer may be longer than 4 kB."
    )

    @property
    def most(self) -> int:
        return self.limit or FEW

    @property
    def wants_more(self) -> bool:
        return self.limit is not None


class WriteArguments(Arguments):
    dry_run: bool = Field(True, description="True: only try it, and say what would happen. Nothing is saved.")
    comment: str = Field("", max_length=MAX_LENGTH, description="Why, for the audit log.")


@dataclass(frozen=True, slots=True)
class Call:
    """The caller of a tool, and the URL of this server."""

    caller: Caller
    server: str


@dataclass(frozen=True, slots=True)
class Tool:
    """``is_destructive``: its changes can take something from users. Tools that write have WriteArguments,
    with a dry run. ``stores``: it stores something of the caller's own, without one.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Call, Any], Answer]
    is_destructive: bool = False
    stores: bool = False

    @property
    def has_dry_run(self) -> bool:
        return issubclass(self.arguments, WriteArguments)

    @property
    def is_read_only(self) -> bool:
        return not self.stores and not self.has_dry_run

    def document(self) -> dict[str, Any]:
        """The tool's entry in the list."""
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
    """Calls an action as the API does. A dry run is rolled back, together with its notifications.

    A dry run also includes the project's checks at the end of a change.
    """
    call.caller.skips_requests = True
    with changing(comment=tidy_comment(arguments.comment)):
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


MAX_BYTES = 4_000
MAX_BYTES_ASKED = 64_000
"""The maximum size of an answer when the caller sets how much to list."""
MAX_TEXT = 400
MAX_EXACT_TEXT = 40_000
"""The maximum length of a text that is returned exactly, such as the payload of a variant."""
MIN_TEXT = 20
LEFT_OFF = "leftOff"
_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn"}
_ALLOWED = {"\n", "\t"}


class Whole(str):
    """A text of flagadmin's own that would be useless if cut, such as a program."""

    __slots__ = ()


class Exact(dict[str, Any]):
    """A document that the caller may send back. Its texts keep ``MAX_EXACT_TEXT`` characters, unchanged."""


def shorten_answer(
    answer: Mapping[str, Any], *, max_bytes: int = MAX_BYTES, max_text: int = MAX_TEXT
) -> dict[str, Any]:
    """The answer as JSON of at most ``max_bytes``: cuts the ends of long lists, and then of long texts.

    ``leftOff`` has the number of omitted entries, by the list's name.
    """
    document: dict[str, Any] = _tidy(answer, max_text)
    left_off: dict[str, int] = {}
    while len(_dump(document)) > max_bytes:
        lists = list(_find_lists(document))
        name, longest = max(lists, key=lambda item: len(item[1]), default=("", []))
        if len(longest) < 2:
            if max_text <= MIN_TEXT:
                return {"error": "The answer is too long. Ask for less."}
            return shorten_answer(answer, max_bytes=max_bytes, max_text=max_text // 2)
        kept = len(longest) // 2
        left_off[name] = left_off.get(name, 0) + len(longest) - kept
        del longest[kept:]
        document[LEFT_OFF] = left_off
    return document


def render_answer(document: Mapping[str, Any]) -> str:
    return _dump(document).decode()


def _dump(document: Any) -> bytes:
    return orjson.dumps(document, option=ORJSON_OPTIONS)


def _tidy(value: Any, max_text: int) -> Any:
    if isinstance(value, Exact):
        return _cut_exact(dict(value))
    if isinstance(value, str):
        text = show_invisible(value)
        return text if isinstance(value, Whole) else clip(text, max_text)
    if isinstance(value, Mapping):
        return {_tidy(str(key), max_text): _tidy(each, max_text) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_tidy(each, max_text) for each in value]
    return value


def _cut_exact(value: Any) -> Any:
    if isinstance(value, str):
        return clip(value, MAX_EXACT_TEXT)
    if isinstance(value, Mapping):
        return {str(key): _cut_exact(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_cut_exact(each) for each in value]
    return value


def show_invisible(text: str) -> str:
    """Replaces invisible and deceptive characters, such as a change of direction, with a visible one."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(letter) in _INVISIBLE and letter not in _ALLOWED else letter
        for letter in text
    )


def _find_lists(value: Any, name: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _find_lists(each, key)
    elif isinstance(value, list):
        yield name, value
        for each in value:
            yield from _find_lists(each, name)

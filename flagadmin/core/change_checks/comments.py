"""The comment that explains a change. All audit events recorded while it is set (`changing`) store it.

Projects may require one in some of their environments. An app above provides that check, which is called with the
events before they are recorded.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.http import QueryDict
from rest_framework.exceptions import APIException
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from flagadmin.core import change_checks
from flagadmin.core.change_checks import KnownChange, Refusal
from flagadmin.core.change_options import get_comment
from flagadmin.core.errors import AppError, Problem, ValidationError
from flagadmin.core.hook import Hook

HEADER = "X-Comment"
FIELD = "comment"
"""The same in bodies of the API and in forms."""
MAX_LENGTH = 1_000
_NO_CHANGES = ("/playground", "/compare", "/validate", "/search", "/export")


class CommentRefused(Refusal):
    """400: a comment is required here and missing, or too long. Nothing was saved."""

    title = "Why?"
    template_name = "console/ask_comment.html"
    answer_field = FIELD
    status = ValidationError.status

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        super().__init__(message, problems)
        self._message, self.problems = message, problems

    @property
    def message(self) -> str:
        return self._message

    @classmethod
    def missing(cls, places: Sequence[str]) -> "CommentRefused":
        """The refusal for these places, such as ``Checkout (production)``, which require a comment."""
        *others, last = places
        verb = "require" if others else "requires"
        named = f"{', '.join(others)} and {last}" if others else last
        problems = [Problem(FIELD, f"required in {place}") for place in places]
        return cls(f"{named} {verb} a comment on each change.", problems)

    @classmethod
    def too_long(cls, length: int) -> "CommentRefused":
        problem = f"must have at most {MAX_LENGTH:,} characters, not {length:,}"
        return cls(f"The comment {problem}.", [Problem(FIELD, problem)])

    def as_app_error(self) -> AppError:
        how = f'Send it as "{FIELD}" in the body or in the header {HEADER}.'
        return ValidationError(f"{self.message} {how} Nothing was saved.", details=self.problems)


def tidy_comment(text: Any) -> str:
    """The text without surrounding space. Raises CommentRefused, ValidationError."""
    if not isinstance(text, str):
        raise ValidationError.at(FIELD, f"must be a string, not {text!r:.100}")
    tidied = text.replace("\r\n", "\n").strip()
    if len(tidied) > MAX_LENGTH:
        raise CommentRefused.too_long(len(tidied))
    return tidied


# Where the comment comes from ------------------------------------------------------------------------------


def read_comment_in_form(form: QueryDict) -> str:
    """The first comment that is not empty: a page may have several dialogs that ask for one."""
    return next((text for text in form.getlist(FIELD) if text.strip()), "")


def make_comment_reader(request: Request) -> Callable[[], str]:
    """Makes a function that reads the comment of an API call from its header, or from its body if that is an object.

    The function reads the body late, because views check permissions before they read it. Raises CommentRefused for a
    header that is too long.
    """
    header = tidy_comment(_decode(request.headers.get(HEADER, "")))

    def read() -> str:
        return header or _read_from_body(request)

    return read


def _read_from_body(request: Request) -> str:
    try:
        body = request.data
    except (APIException, AppError):  # the view needs no body
        return ""
    comment = body.get(FIELD) if isinstance(body, dict) else None
    return "" if comment is None else tidy_comment(comment)


def _decode(header: str) -> str:
    """Decodes UTF-8, which clients such as curl send in headers and which WSGI reads as Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def list_header_parameters(path: str, method: str) -> list[dict[str, Any]]:
    """The OpenAPI parameter for the comment of an operation that makes a change."""
    if (
        method in SAFE_METHODS
        or not path.startswith("/api/admin/")
        or any(part in path for part in _NO_CHANGES)
    ):
        return []
    return [
        {
            "in": "header",
            "name": HEADER,
            "schema": {"type": "string", "maxLength": MAX_LENGTH},
            "description": f"Why: kept in the audit log. Bodies that are objects may have it as `{FIELD}` instead.",
        }
    ]


# Where a comment is required ---------------------------------------------------------------------------------

check_required: Hook[[Iterable[Any]], None] = Hook(
    "flagadmin.core.change_checks.comments.check_required", lambda events: None
)
"""Raises CommentRefused if one of these audit events needs a comment. None of them has one."""


def check_comment(events: Iterable[Any]) -> None:
    """Checks the comment on these events. Raises CommentRefused, ValidationError."""
    if not get_comment():
        check_required(events)


def foresee(events: Iterable[Any], known: KnownChange) -> None:
    """Raises the refusals of the running action, if it makes only this change: of its comment, and of its effect."""
    check_comment(events)
    change_checks.foresee(known)

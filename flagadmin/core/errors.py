"""The errors that a request can fail with, one exception class each.

An error has an HTTP status, a name for the error record, a message and optionally a list of problems. Actions
raise errors; ``flagadmin.core.http.error_responses`` converts them to responses. Names and statuses follow the API
specification.

Texts in sentences: numbers of things, lists of names, and shortened texts.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

MAX_DETAILS = 100
MAX_DETAILS_BYTES = 80_000  # keeps an error record below 100 kB
MAX_PATH_LENGTH, MAX_MESSAGE_LENGTH = 250, 4_000  # characters


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. ``path`` is a JSON path ("data.features[3].name") or a parameter's name."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def as_dict(self) -> dict[str, str]:
        return {"path": self.path, "message": self.message}


def join_path(path: str, part: str | int) -> str:
    """Joins ``data`` and ``features`` to ``data.features``, and that and 3 to ``data.features[3]``."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    return f"{path}.{part}" if path else part


class AppError(Exception):
    """An error that is shown to the caller.

    ``details`` are problems with their paths: the first :data:`MAX_DETAILS`, and the number of further ones.
    ``count`` is the total number of problems if only the first are given. ``extra`` holds additional keys of
    the record, for example ``permissions`` of NoAccess.
    """

    status: ClassVar[int] = 500
    name: ClassVar[str] = "UnknownError"
    default_message: ClassVar[str] = (
        "Something went wrong. The server log has the details under this error's id."
    )
    default_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        message: str | None = None,
        *,
        details: Iterable[Problem] = (),
        count: int | None = None,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message = clip(message or self.default_message, MAX_MESSAGE_LENGTH)
        self.details = limit_problems(list(details), count)
        self.extra = dict(extra or {})
        self.headers = dict(headers or self.default_headers)
        super().__init__(self.message)

    def record(self, error_id: str) -> dict[str, Any]:
        """The error record: ``{id, name, message, details?}`` and the extra keys of the class."""
        record: dict[str, Any] = {"id": error_id, "name": self.name, "message": self.message}
        if self.details:
            record["details"] = [problem.as_dict() for problem in self.details]
        return record | self.extra


class ValidationError(AppError):
    """400: the content of the request is invalid: schema, values, unknown names, limits, patterns."""

    status = 400
    name = "ValidationError"
    default_message = "The request is not valid. Every problem is listed in details."

    @classmethod
    def at(cls, path: str, message: str) -> "ValidationError":
        """An error with one problem, whose path is also part of the message."""
        return cls(f"{path}: {message}" if path else message, details=[Problem(path, message)])

    @classmethod
    def of(cls, problems: Iterable[Problem], *, count: int | None = None) -> "ValidationError":
        """An error with several problems. ``count`` is their total number if only the first are given."""
        problems = list(problems)
        count = len(problems) if count is None else count
        if count == 1:
            [problem] = problems
            return cls(str(problem), details=problems)
        listed = "Every one is" if count <= MAX_DETAILS else f"The first {MAX_DETAILS} are"
        return cls(
            f"The request has {count:,} problems. {listed} listed in details.", details=problems, count=count
        )


class UserExists(ValidationError):
    """The user name or email address is taken: 400 as in the reference server, unlike other names in use."""


class RoleInUse(AppError):
    status = 400
    name = "RoleInUseError"


class AuthenticationRequired(AppError):
    status = 401
    name = "AuthenticationRequired"
    default_message = "Send an API token in the Authorization header, or log in at /login/."
    default_headers = {"WWW-Authenticate": "ApiKey"}


class NoAccess(AppError):
    """403: the caller is authenticated, but the token has the wrong type or a permission is missing."""

    status = 403
    name = "NoAccessError"
    default_message = "This token does not give access to this resource."

    @classmethod
    def missing(cls, permissions: Iterable[str], message: str) -> "NoAccess":
        return cls(message, extra={"permissions": list(permissions)})

    @classmethod
    def of_kind(cls, kind: str, accepted: Iterable[str]) -> "NoAccess":
        """The error for a token of this kind where only other kinds are accepted."""
        article = "an" if kind[0] in "aeiou" else "a"
        kinds = " or ".join(sorted(accepted))
        return cls(f"This is {article} {kind} token; this endpoint accepts {kinds} tokens only.")


class InvalidOperation(AppError):
    """403: a rule forbids the operation to every caller."""

    status = 403
    name = "InvalidOperationError"


class NotFound(AppError):
    status = 404
    name = "NotFoundError"
    default_message = "Not found."


class MethodNotAllowed(AppError):
    status = 405
    name = "MethodNotAllowedError"


class RequestTimeout(AppError):
    """408: the body did not arrive in time."""

    status = 408
    name = "RequestTimeoutError"
    default_message = "The request body did not arrive in time. Send it faster or in smaller parts."


class NameExists(AppError):
    status = 409
    name = "NameExistsError"


class Conflict(AppError):
    """409: the data that the request is based on has changed since it was read."""

    status = 409
    name = "ConflictError"


class EditConflict(Conflict):
    """409: the object has changed since the caller read it. ``current`` is its current document.

    ``words``: the message of this error, None for the default one.
    """

    default_message = "This has changed since you opened this page. Nothing was saved."

    def __init__(self, current: Any, message: str | None = None) -> None:
        super().__init__(message)
        self.current, self.words = current, message


class PreconditionFailed(AppError):
    """412: no tag in ``If-Match`` is the current one. ``current`` in the record is the current document."""

    status = 412
    name = "PreconditionFailedError"
    default_message = (
        "This has changed since you read it. Nothing was saved. The stored version is in current."
    )


class PayloadTooLarge(AppError):
    status = 413
    name = "PayloadTooLargeError"


class ContentTypeNotAccepted(AppError):
    status = 415
    name = "ContentTypeError"


class TooManyRequests(AppError):
    status = 429
    name = "RateLimitError"


class UnknownError(AppError):
    """500: an unexpected error. The record has only an id; the log line with this id has the traceback."""


class BadGateway(AppError):
    """502: the identity provider sent an invalid answer."""

    status = 502
    name = "BadGateway"


class ServiceUnavailable(AppError):
    status = 503
    name = "ServiceUnavailableError"
    default_message = "The database is not available. Try again later."
    default_headers = {"Retry-After": "5"}


class Busy(ServiceUnavailable):
    """503: no connection to the database was free in time, although it answers."""

    default_message = "flagadmin is busy: all of its database connections are in use. Try again in a moment."
    default_headers = {"Retry-After": "1"}


class MaintenanceMode(ServiceUnavailable):
    default_message = "Maintenance mode is on: nothing can be changed until an admin ends it."
    default_headers = {"Retry-After": "60"}


class NotConfirmed(ServiceUnavailable):
    """503: the change was made, but the synchronous standby did not confirm it in time."""

    default_message = (
        "The standby of the database did not confirm this in time. The change is saved on the primary, but would be"
        " lost if the primary failed now. Check whether it took effect before you try again."
    )


class NoStandby(ServiceUnavailable):
    default_message = (
        "Nothing was changed, because no standby of the database confirms changes. Try again later."
    )


class DiskFull(ServiceUnavailable):
    default_message = "The database disk is full. Nothing can be written until space is freed."


def check_problems(problems: Iterable[Problem]) -> None:
    """Raises ValidationError if there are any problems."""
    problems = list(problems)
    if problems:
        raise ValidationError.of(problems)


def limit_problems(problems: list[Problem], count: int | None = None) -> list[Problem]:
    """The first problems, shortened, and a last one with the number of problems omitted."""
    listed = list(_limit_bytes(problems[:MAX_DETAILS]))
    more = (len(problems) if count is None else count) - len(listed)
    if more > 0:
        listed.append(Problem("", f"and {more:,} more"))
    return listed


def _limit_bytes(problems: Iterable[Problem]) -> Iterator[Problem]:
    size = 0
    for problem in problems:
        cut = Problem(clip(problem.path, MAX_PATH_LENGTH), clip(problem.message, MAX_MESSAGE_LENGTH))
        size += len(json.dumps(cut.as_dict()))
        if size > MAX_DETAILS_BYTES:
            return
        yield cut


def collect_errors(*checks: Callable[[], object]) -> list[AppError]:
    """The errors that these checks raise. Shows why an operation is not possible without trying it."""
    errors = []
    for check in checks:
        try:
            check()
        except AppError as error:
            errors.append(error)
    return errors


def clip(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pluralize(number: int, one: str, many: str = "") -> str:
    """``1 flag``, ``2 flags``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def join_words(words: Iterable[str], *, comma: str = "", word: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``. ``comma``: the text before the "and" of three or more."""
    words = list(words)
    if len(words) < 3:
        return f" {word} ".join(words)
    return f"{', '.join(words[:-1])}{comma} {word} {words[-1]}"


def list_some(words: Sequence[str], limit: int) -> str:
    """``a, b and 3 more``."""
    listed = ", ".join(words[:limit])
    return f"{listed} and {len(words) - limit:,} more" if len(words) > limit else listed


def choices(names: Iterable[str], *, limit: int = 20) -> str:
    """The valid choices for an error message, in code-point order: ``development, production``."""
    return list_some(sorted(names), limit)


def name_flags(names: Collection[str]) -> str:
    """``1 flag: cart``, ``2 flags: cart, search``."""
    return f"{pluralize(len(names), 'flag')}: {choices(names)}"


def format_size(size: int) -> str:
    """``1.4 MB``, ``230 kB``, ``80 bytes``."""
    if size >= 1_000_000:
        return f"{size / 1_000_000:.1f} MB"
    return f"{size / 1_000:.0f} kB" if size >= 1_000 else f"{size} bytes"

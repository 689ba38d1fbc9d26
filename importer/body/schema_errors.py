"""Converts pydantic's errors in an import body to problems with JSON paths and readable messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any, TypeVar, get_args

import orjson
from pydantic import TypeAdapter, ValidationError
from typing_extensions import get_type_hints, is_typeddict

from flagadmin.core import errors
from flagadmin.core.errors import MAX_DETAILS, Problem
from flagadmin.core.wording import choices
from importer.body.coercion import EXPECTED_TYPE

Location = tuple[int | str, ...]
T = TypeVar("T")

MAX_KEY_LENGTH = 60
MAX_JSON_LENGTH = 80
"""The length to which unknown keys are truncated."""


CHUNK = 1_000
"""The number of entries of each list that are validated together, which bounds the memory for errors."""
MAX_SCHEMAS = 1_000_000
"""Bytes of all payload schemas of a body. Checking them takes up to 25 s."""


def validate_by_parts(adapter: TypeAdapter, raw: Any, shape: Any) -> Any:
    """The validated body.

    Raises ValidationError with the first errors, their JSON paths and the total number of errors. Messages about a
    flag's entry begin with the name of the flag.
    """
    read, problems, count, outside = None, list[Problem](), 0, 0
    context = {"left": MAX_SCHEMAS}
    for start, part in _split_body(raw):
        try:
            part_body = adapter.validate_python(part, context=context)
        except ValidationError as invalid:
            # Errors outside the lists occur in every part and must be counted once.
            count += invalid.error_count() - outside
            if len(problems) < MAX_DETAILS:
                part_errors = invalid.errors(include_url=False, include_input=True, include_context=True)
                inside = [error for error in part_errors if len(error["loc"]) > 2]
                outside = len(part_errors) - len(inside)
                reported = inside if start else part_errors
                problems += (_make_problem(error, raw, shape, start) for error in reported[:MAX_DETAILS])
            continue
        if read is None:
            read = part_body
        else:
            for name, entries in part_body["data"].items():
                read["data"][name] += entries
    if count:
        raise make_validation_error(problems, count)
    return read


def validate_shape(adapter: TypeAdapter[T], raw: Any, shape: Any) -> T:
    """The validated body, all of it at once. Raises ValidationError with the first errors and their JSON paths."""
    try:
        return adapter.validate_python(raw, context={"left": MAX_SCHEMAS})
    except ValidationError as invalid:
        listed = invalid.errors(include_url=False)[:MAX_DETAILS]
        raise make_validation_error(
            [_make_problem(error, raw, shape, 0) for error in listed], invalid.error_count()
        ) from None


def _split_body(raw: Any) -> Iterator[tuple[int, Any]]:
    """Yields the body with CHUNK entries of each list at a time, and the index of the first."""
    data = raw.get("data") if isinstance(raw, dict) else None
    lists = {k: v for k, v in data.items() if isinstance(v, list)} if isinstance(data, dict) else {}
    longest = max(map(len, lists.values()), default=0)
    if longest <= CHUNK:
        yield 0, raw
        return
    for start in range(0, longest, CHUNK):
        entries = {name: items[start : start + CHUNK] for name, items in lists.items()}
        yield start, {**raw, "data": {**data, **entries}}  # type: ignore[dict-item]


def make_validation_error(problems: Iterable[Problem], count: int) -> errors.ValidationError:
    """A ValidationError for ``count`` problems that lists the first ones."""
    return errors.ValidationError.of(islice(problems, MAX_DETAILS), count=count)


def format_json_path(location: Location) -> str:
    """``("data", "features", 3, "name")`` → ``data.features[3].name``"""
    path = ""
    for step in location:
        path += (
            f"[{step}]"
            if isinstance(step, int)
            else f".{step[:MAX_KEY_LENGTH]}"
            if path
            else step[:MAX_KEY_LENGTH]
        )
    return path


def to_short_json(value: Any) -> str:
    """A value as JSON, shortened."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # nested deeper than orjson writes
        text = str(type(value).__name__)
    return text if len(text) <= MAX_JSON_LENGTH else f"{text[:MAX_JSON_LENGTH]}…"


def _make_problem(error: Mapping[str, Any], raw: Any, shape: Any, start: int) -> Problem:
    location = tuple(step for step in error["loc"] if step != "[key]")
    if len(location) > 2 and isinstance(location[2], int):
        location = (*location[:2], location[2] + start, *location[3:])
    flag = find_flag_at(raw, location)
    message = _make_message(error, location, shape)
    return Problem(format_json_path(location), f"{flag}: {message}" if flag else message)


def _make_message(error: Mapping[str, Any], location: Location, shape: Any) -> str:
    kind = error["type"]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return _describe_unknown_key(str(location[-1]), list_valid_keys(shape, location[:-1]))
    return f"must be {_describe_expected(error)}, not {to_short_json(error['input'])}"


def _describe_expected(error: Mapping[str, Any]) -> str:
    if error["type"] == EXPECTED_TYPE:
        return error["ctx"]["expected"]
    return {"list_type": "a list", "dict_type": "an object", "typed_dict_type": "an object"}.get(
        error["type"], error["msg"]
    )


def _describe_unknown_key(key: str, valid: Sequence[str]) -> str:
    nearest = get_close_matches(key[:MAX_KEY_LENGTH], valid, n=1, cutoff=0.5)
    meant = f"Did you mean {nearest[0]}?" if nearest else f"Valid keys: {choices(valid)}."
    return f"is not a valid key. {meant}"


def list_valid_keys(shape: Any, location: Location) -> list[str]:
    """The valid keys of the object at a location."""
    for step in location:
        if shape is not None:  # members of lists and dicts have the shape of the items
            shape = list_members(shape).get(step, shape)
    return [] if shape is None else list(list_members(shape))


@cache
def list_members(shape: Any) -> dict[Any, Any]:
    """Maps each member of a TypedDict to the TypedDict that it is or contains; None if it is neither."""
    return {member: _find_typed_dict(hint) for member, hint in get_type_hints(shape).items()}


def _find_typed_dict(hint: Any) -> Any:
    if is_typeddict(hint):
        return hint
    return next((inner for each in get_args(hint) if (inner := _find_typed_dict(each))), None)


def find_flag_at(raw: Any, location: Location) -> str | None:
    """The name of the flag to whose entry ``data.LIST[n]`` a location belongs."""
    if len(location) < 3 or location[0] != "data" or not isinstance(location[2], int):
        return None
    try:
        entry = raw["data"][location[1]][location[2]]
        name = entry.get("featureName") or entry.get("feature") or entry.get("name")
    except (AttributeError, KeyError, TypeError, IndexError):
        return None
    named = location[1] in ("features", "featureStrategies", "featureEnvironments", "featureTags")
    about = named or location[1] in ("dependencies", "links", "payloadSchemas")
    return name[:100] if about and isinstance(name, str) else None

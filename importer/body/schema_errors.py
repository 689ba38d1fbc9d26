"""Converts pydantic's errors in an import body to problems with JSON paths and readable messages.

pydantic types for the import body that convert values of other JSON types, as the reference does.

pydantic validates values of the right type itself; Python code runs only for the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypeVar, get_args

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic_core import core_schema
from typing_extensions import get_type_hints, is_typeddict

from flagadmin.core import errors
from flagadmin.core.errors import MAX_DETAILS, Problem, choices
from projects.strategies.rules import TOTAL_WEIGHT
from projects.text_values import format_scalar, is_scalar

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


EXPECTED_TYPE = "expected_type"
"""The pydantic error type whose context names the expected type."""


class Coerced:
    """Accepts everything that the pydantic schema ``own`` accepts, else calls ``convert``, which may raise
    ValueError.
    """

    def __init__(
        self,
        expected: str,
        own: core_schema.CoreSchema | None,
        convert: Callable[[Any], Any],
        schema: dict[str, Any],
    ) -> None:
        self.expected, self.own, self.convert, self.schema = expected, own, convert, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        converted = core_schema.no_info_plain_validator_function(self.convert)
        return core_schema.union_schema(
            [converted if self.own is None else self.own, converted],
            mode="left_to_right",
            custom_error_type=EXPECTED_TYPE,
            custom_error_message="{expected}",
            custom_error_context={"expected": self.expected},
        )

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def as_string(value: Any) -> str:
    if not is_scalar(value):
        raise ValueError(value)
    return format_scalar(value)


def as_boolean(value: Any) -> bool:
    if value is None or value == "false" or value == 0:
        return False
    if value == "true" or value == 1:
        return True
    raise ValueError(value)


def as_number(value: Any) -> int | float:
    if value is None or isinstance(value, bool):
        return int(value or 0)
    if isinstance(value, str) and value.strip() and "_" not in value:
        number = float(value)
        if number - number == 0:  # neither infinite nor NaN
            return int(number) if number.is_integer() else number
    raise ValueError(value)


def as_integer(value: Any) -> int:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else as_number(value)
    if isinstance(number, float) and not number.is_integer():
        raise ValueError(value)
    return int(number)


def as_weight(value: Any) -> int:
    weight = as_integer(value)
    if not 0 <= weight <= TOTAL_WEIGHT:
        raise ValueError(value)
    return weight


def as_share(value: Any) -> int | float:
    share = value if isinstance(value, int | float) and not isinstance(value, bool) else as_number(value)
    if not 0 <= share <= TOTAL_WEIGHT:
        raise ValueError(value)
    return share


def as_moment(value: Any) -> datetime:
    """An RFC 3339 date-time, in UTC. Refuses years 1 and 9999, which overflow in other time zones."""
    if not isinstance(value, str) or len(value) < 20:
        raise ValueError(value)
    moment = datetime.fromisoformat(value.upper())  # "t" and "z" may be lower case
    if moment.tzinfo is None or not 1 < moment.year < 9999:
        raise ValueError(value)
    return moment.astimezone(UTC)


def refuse_any(value: Any) -> Any:
    """A ``convert`` function that accepts nothing."""
    raise ValueError(value)


def as_choice(*names: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value in names:
            return value
        raise ValueError(value)

    return convert


COLOR = "^#[0-9A-Fa-f]{6}$"
_BOUNDS = {"minimum": 0, "maximum": TOTAL_WEIGHT}
_TEXT = core_schema.str_schema(strict=True)
_COLOR = core_schema.str_schema(strict=True, pattern=COLOR)
_BOOLEAN = core_schema.bool_schema(strict=True)
_NUMBER = core_schema.union_schema(
    [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True, allow_inf_nan=False)],
    mode="left_to_right",
)
_WHOLE = core_schema.int_schema(strict=True)
_WEIGHT = core_schema.int_schema(strict=True, ge=0, le=TOTAL_WEIGHT)

Text = Annotated[str, Coerced("a string", _TEXT, as_string, {"type": "string"})]
Boolean = Annotated[bool, Coerced("true or false", _BOOLEAN, as_boolean, {"type": "boolean"})]
Number = Annotated[float, Coerced("a number", _NUMBER, as_number, {"type": "number"})]
Integer = Annotated[int, Coerced("an integer", _WHOLE, as_integer, {"type": "integer"})]
Weight = Annotated[
    int,
    Coerced(f"an integer from 0 to {TOTAL_WEIGHT}", _WEIGHT, as_weight, {"type": "integer", **_BOUNDS}),
]
Share = Annotated[
    float, Coerced(f"a number from 0 to {TOTAL_WEIGHT}", _WEIGHT, as_share, {"type": "number", **_BOUNDS})
]
Color = Annotated[
    str, Coerced("a color like #00AAFF", _COLOR, refuse_any, {"type": "string", "pattern": COLOR})
]
Moment = Annotated[
    datetime,
    Coerced(
        "a date-time like 2026-11-21T09:00:00Z", None, as_moment, {"type": "string", "format": "date-time"}
    ),
]


def make_choice(*names: str) -> Coerced:
    """A string that is one of these names."""
    own = core_schema.literal_schema(list(names))
    schema = {"type": "string", "enum": list(names)}
    return Coerced(f"one of {', '.join(names)}", own, as_choice(*names), schema)

"""pydantic types for the import body that convert values of other JSON types, as the reference does.

pydantic validates values of the right type itself; Python code runs only for the others.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic_core import core_schema

from projects.strategies.variant_rules import TOTAL_WEIGHT
from projects.text_values import format_scalar, is_scalar

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

"""JSON Schemas (draft 2020-12) of payloads: which are accepted, and how payloads are checked within bounds.

A schema refers only to itself, so that nothing is fetched. RE2 matches its patterns, in linear time. All steps of a
check are counted, because references can make a small schema take exponential time.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import islice
from typing import Any

import attrs
import orjson
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import create
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from flagadmin.core.errors import Problem, choices, clip
from flagadmin.core.server.memory import on_one_stack
from playground.engine.literals import objects_of
from playground.engine.operators import compile_pattern, find_fault

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA = 64_000  # bytes
MAX_PAYLOAD = 100_000  # characters
MAX_DEPTH = 30
MAX_VALUES = 5_000
"""Of a schema: objects, lists and everything in them. Checking the schema itself takes up to 0.4 ms for each."""
MAX_PATTERNS = 100
"""Of a schema."""
MAX_STEPS = 1_000_000
"""Of the payloads of a flag; it takes at most about 2 s."""
MAX_ALL_STEPS = 2_000_000
"""Of the payloads of all flags of a change, because the project stays locked meanwhile."""
MAX_SHOWN = 5
"""Problems of one payload."""
MAX_MESSAGE = 200
HOLDING_SCHEMAS = frozenset({"$defs", "definitions", "properties"})
"""Keywords whose members are schemas by any name."""
UNSUPPORTED = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")


class _TooCostly(Exception):
    pass


_steps_left: ContextVar[int] = ContextVar("steps_left")
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def _spend(steps: int) -> None:
    """Counts steps, of about 2 µs each, before they are taken."""
    left = _steps_left.get() - steps
    _steps_left.set(left)
    if left < 0:
        raise _TooCostly


def _measure(value: Any) -> int:
    """The steps to compare or to write a value."""
    if isinstance(value, str):
        return len(value) // 500
    return len(orjson.dumps(value)) // 4 if isinstance(value, list | dict) else 0


def _counted(name: str, keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        steps = 1 + sum(len(each) for each in (value, instance) if isinstance(each, list | dict))
        if name in ("const", "enum", "dependentRequired"):
            steps += _measure(value) + _measure(instance)
        elif name == "$ref":
            steps += len(value)
        _spend(steps)
        for error in keyword(validator, value, instance, schema) or ():
            _spend(
                10 + len(error.message) // 50
            )  # which has all of the instance, and may be one of many of `anyOf`
            error.message = clip(error.message, MAX_MESSAGE)
            yield error

    return check


def _search(patterns: Iterable[str], texts: Collection[str]) -> list[Any]:
    """The patterns, compiled, after counting the steps to search all the texts for them."""
    compiled = [compile_pattern(pattern) for pattern in patterns]
    size, length = sum(each.programsize for each in compiled), sum(map(len, texts))
    _spend(4 * len(compiled) * len(texts) + size * length // 200)
    return compiled


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _search([pattern], [instance])[0].search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for expression, (pattern, inner) in zip(_search(patterns, instance), patterns.items(), strict=True):
        for name, value in instance.items():
            if expression.search(name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns = _search(schema.get("patternProperties", ()), instance)
    named = schema.get("properties", ())
    extra = [name for name in instance if name not in named and not any(p.search(name) for p in patterns)]
    if allowed is False and extra:
        yield ValidationError(f"has unknown members: {choices(extra, limit=5)}")
    elif isinstance(allowed, dict):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if unique and isinstance(instance, list):
        texts = [orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in instance]
        _spend(sum(map(len, texts)) // 50)
        if len(set(texts)) < len(instance):
            yield ValidationError("has items more than once")


def _list_keywords(schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The keywords of a schema that is about to be applied. Others cost steps too, because each is looked up."""
    _spend(6 + len(schema) // 8)
    return schema.items()


_KEYWORDS = {
    **{name: keyword for name, keyword in Draft202012Validator.VALIDATORS.items() if name not in UNSUPPORTED},
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
_Validator: Any = create(
    Draft202012Validator.META_SCHEMA,
    {name: _counted(name, keyword) for name, keyword in _KEYWORDS.items()},
    type_checker=Draft202012Validator.TYPE_CHECKER,
    id_of=Draft202012Validator.ID_OF,
    applicable_validators=_list_keywords,
)
# Otherwise, a `$schema` in a part of the schema selects a validator that counts nothing.
_Validator.evolve = attrs.evolve


# Schemas ----------------------------------------------------------------------------------------------------


def schema_problems(schema: Any) -> Iterator[Problem]:
    """Problems of a schema, with JSON pointers into it."""
    if not isinstance(schema, dict):
        yield Problem("schema", "must be an object")
        return
    try:
        size = len(orjson.dumps(schema))
    except orjson.JSONEncodeError:
        message = f"must be JSON, nested at most {MAX_DEPTH} levels deep, with integers of at most 64 bits"
        yield Problem("schema", message)
        return
    if size > MAX_SCHEMA:
        yield Problem("schema", f"must have at most {MAX_SCHEMA:,} bytes, not {size:,}")
        return
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        yield Problem("schema/$schema", f"must be {DIALECT} or left out")
        return
    problems = list(_node_problems(schema, schema))
    yield from problems
    if problems:
        return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield Problem(f"schema{make_pointer(error.absolute_path)}", clip(error.message, MAX_MESSAGE))


def _node_problems(schema: Mapping[str, Any], root: Any) -> Iterator[Problem]:
    waiting: list[tuple[Any, str, int]] = [(schema, "schema", 0)]
    values, patterns = 0, 0
    while waiting:
        node, place, depth = waiting.pop()
        values += 1
        patterns += _count_patterns(node)
        if values > MAX_VALUES:
            yield Problem(
                "schema", f"must have at most {MAX_VALUES:,} values, such as objects, lists and numbers"
            )
            return
        if patterns > MAX_PATTERNS:
            yield Problem("schema", f"must have at most {MAX_PATTERNS} patterns")
            return
        if depth > MAX_DEPTH:
            yield Problem("schema", f"must be nested at most {MAX_DEPTH} levels deep")
            return
        if isinstance(node, list):
            waiting += [(item, f"{place}/{index}", depth + 1) for index, item in enumerate(node)]
        elif isinstance(node, dict):
            yield from _keyword_problems(node, place, root)
            waiting += [(value, f"{place}{make_pointer([key])}", depth + 1) for key, value in node.items()]


def _count_patterns(node: Any) -> int:
    if not isinstance(node, dict):
        return 0
    named = node.get("patternProperties")
    return isinstance(node.get("pattern"), str) + (len(named) if isinstance(named, dict) else 0)


def _keyword_problems(node: Mapping[str, Any], place: str, root: Any) -> Iterator[Problem]:
    for name in UNSUPPORTED:
        if name in node and not place.endswith("/properties"):
            yield Problem(f"{place}/{name}", "is not supported")
    for name in ("$id", "$schema"):
        if isinstance(node.get(name), str) and place != "schema":
            yield Problem(f"{place}/{name}", "is only supported at the top")
    reference = node.get("$ref")
    if isinstance(reference, str) and not _resolves(reference, root):
        yield Problem(f"{place}/$ref", "must refer to a part of this schema, such as #/$defs/price")
    patterns = node.get("patternProperties")
    listed = [("patternProperties", pattern) for pattern in patterns] if isinstance(patterns, dict) else []
    if isinstance(node.get("pattern"), str):
        listed.append(("pattern", node["pattern"]))
    for keyword, pattern in listed:
        if fault := find_fault(pattern):
            yield Problem(f"{place}/{keyword}", f"{clip(pattern)} {fault}")


def _resolves(reference: str, root: Any) -> bool:
    first, *parts = reference.split("/")
    # Each use of an anchor would search the whole schema for it, and elsewhere there may be something invalid.
    if first != "#" or len(parts) % 2 or not HOLDING_SCHEMAS.issuperset(parts[::2]):
        return False
    registry: Any = Registry().with_resource("", DRAFT202012.create_resource({**root, "$id": ""}))
    # A part on the way may be of any type: only the whole schema's check finds that it is invalid.
    with suppress(Unresolvable, ValueError, TypeError, LookupError, AttributeError):
        registry.resolver().lookup(reference)
        return True
    return False


def make_pointer(path: Sequence[str | int] | Any) -> str:
    """A JSON Pointer (RFC 6901): ``/prices/0/amount``; empty for the whole document."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


# Payloads ---------------------------------------------------------------------------------------------------


@on_one_stack
def _find_errors(schema: Any, value: Any, steps: int) -> tuple[list[ValidationError], int]:
    """The first errors of a payload, and the steps that are left."""
    token = _steps_left.set(steps)
    try:
        errors = list(islice(_Validator(schema, registry=Registry()).iter_errors(value), MAX_SHOWN))
        return errors, _steps_left.get()
    finally:
        _steps_left.reset(token)


class PayloadCheck:
    """Checks payloads within two budgets of steps: that of each flag, and that of all flags together."""

    def __init__(self) -> None:
        self._left, self._left_of_all = MAX_STEPS, MAX_ALL_STEPS

    def flag_problems(self, schema: Any, places: Iterable[tuple[str, Any]]) -> Iterator[Problem]:
        """Problems of a flag's lists of variants, each with its path. None after the budget of all flags is used up."""
        self._left = MAX_STEPS
        for path, variants in places:
            yield from self.problems(schema, variants, path)

    def problems(self, schema: Any, variants: Any, path: str) -> Iterator[Problem]:
        """Problems of the JSON payloads of variants, named after the variants below ``path``."""
        for variant in objects_of(variants):
            payload = variant.get("payload")
            if isinstance(payload, dict) and payload.get("type") == "json" and self._left_of_all > 0:
                place = f"{path}[{variant.get('name')}].payload"
                yield from self._payload_problems(schema, str(payload.get("value")), place)

    def _payload_problems(self, schema: Any, text: str, place: str) -> Iterator[Problem]:
        if len(text) > MAX_PAYLOAD:
            message = f"must have at most {MAX_PAYLOAD:,} characters with a payload schema, not {len(text):,}"
            yield Problem(place, message)
            return
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return  # reported with the variant
        budget = min(self._left, self._left_of_all)
        errors, left, message = list[ValidationError](), 0, ""
        try:
            errors, left = _find_errors(schema, value, budget)
        except (_TooCostly, RecursionError, OverflowError):
            message = "takes too many steps to check against the payload schema"
        self._left, self._left_of_all = self._left - (budget - left), self._left_of_all - (budget - left)
        if self._left_of_all <= 0:
            message = (
                f"checking it and the payloads before it takes more than {MAX_ALL_STEPS:,} steps: "
                "change fewer flags at once, or simplify their payload schemas"
            )
        if message:
            yield Problem(place, message)
            return
        for error in errors:
            where = make_pointer(error.absolute_path) or "the payload"
            yield Problem(place, f"{where}: {clip(error.message, MAX_MESSAGE)}")

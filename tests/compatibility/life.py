"""One installation's life, as the reference answered it, sent to our server and compared answer by answer.

``tests/vectors/life.json`` has one request a line: ``body``, ``auth`` and ``path`` may name what earlier answers
gave (``{seg}``), ``keep`` says where such a thing stands in an answer. Members that only our answers have are fine.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from tests.support.cast import client
from tests.support.paths import ROOT

STEPS: list[dict[str, Any]] = json.loads((ROOT / "tests" / "vectors" / "life.json").read_text())
EACH = "<each>"
# What names the items of a list; items of a list without such a name are compared by their place.
NAMES = (
    ("name",),
    ("tokenName",),
    ("appName",),
    ("permission",),
    ("username",),
    ("tagType", "tagValue", "featureName"),
    ("type", "value"),
    ("type",),
)
# Error names of the reference's that are one here (see "Errors by name" in the design).
ERROR_NAMES = dict.fromkeys(
    ("BadDataError", "BadRequestError", "ExceedsLimitError", "PatternError", "OwaspValidationError"),
    "ValidationError",
)


def live(*, key: str) -> Iterator[str]:
    """Sends every request of the life, as an administrator with this token, and tells each difference."""
    known: dict[str, Any] = {"now": timezone.now().isoformat(), "key": key, "user": key}
    for step in STEPS:
        response = _send(step, known)
        answer = _read(response)
        if "what" not in step:
            continue  # it only makes up for what one side did alone
        if response.status_code != step["status"]:
            yield f"{step['what']}: status {response.status_code} instead of {step['status']}"
        else:
            for difference in differences(step["answer"], answer, ""):
                yield f"{step['what']}: {difference}"
        for name, path in step.get("keep", {}).items():
            known[name] = _member(answer, path)


def _send(step: dict[str, Any], known: dict[str, Any]) -> Any:
    api = client(_filled(step["auth"], known))
    path = _filled(step["path"], known)
    body = _filled(step.get("body"), known)
    return api.generic(
        step["method"],
        path,
        json.dumps(body) if "body" in step else "",
        content_type="application/json",
        headers=step.get("headers"),
    )


def _filled(value: Any, known: dict[str, Any]) -> Any:
    """With every ``{name}`` replaced by what it stands for; a value that is nothing else keeps its type."""
    if isinstance(value, dict):
        return {key: _filled(inner, known) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, known) for inner in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{(\w+)\}", value)
    if whole:
        return known[whole[1]]
    return re.sub(r"\{(\w+)\}", lambda match: str(known[match[1]]), value)


def _read(response: Any) -> Any:
    content = b"".join(response) if response.streaming else response.content
    try:
        return json.loads(content)
    except ValueError:
        return content.decode()


def _member(answer: Any, path: list[str | int]) -> Any:
    for key in path:
        if not isinstance(answer, dict | list):
            return None
        try:
            answer = answer[key]
        except (KeyError, IndexError, TypeError):
            return None
    return answer


# Comparing -----------------------------------------------------------------------------------------------


def differences(recorded: Any, ours: Any, place: str) -> Iterator[str]:
    if isinstance(recorded, dict):
        yield from _of_objects(recorded, ours, place)
    elif isinstance(recorded, list):
        yield from _of_lists(recorded, ours, place)
    elif not _same(recorded, ours):
        yield f"{place} is {ours!r:.60} instead of {recorded!r:.60}"


def _of_objects(recorded: dict[str, Any], ours: Any, place: str) -> Iterator[str]:
    if EACH in recorded:
        wanted = set(recorded[EACH])
        if not isinstance(ours, list) or not ours:
            yield f"{place} is empty"
        for missing in sorted(wanted - set.intersection(*map(set, ours or [wanted]))):
            yield f"{place}.*.{missing} is missing"
        return
    if not isinstance(ours, dict):
        yield f"{place} is {ours!r:.60} instead of an object"
        return
    for key, value in recorded.items():
        inner = f"{place}.{key}".lstrip(".")
        if key not in ours:
            yield f"{inner} is missing"
        else:
            yield from differences(value, ours[key], inner)


def _of_lists(recorded: list[Any], ours: Any, place: str) -> Iterator[str]:
    if not isinstance(ours, list):
        yield f"{place} is {ours!r:.60} instead of a list"
        return
    keys = _naming(recorded)
    names, our_names = _names(recorded, keys), _names(ours, keys)
    for name in names:
        if name not in our_names:
            yield f"{place}[{name}] is missing"
    for name in our_names:
        if name not in names:
            yield f"{place}[{name}] is extra"
    both = [name for name in our_names if name in names]
    if both != [name for name in names if name in our_names]:
        yield f"{place} is in another order"
    for name in both:
        item, our_item = recorded[names.index(name)], ours[our_names.index(name)]
        yield from differences(item, our_item, f"{place}[{name}]")


def _naming(items: list[Any]) -> tuple[str, ...]:
    """The members that tell the items apart; empty where only their places do."""
    return next((keys for keys in NAMES if items and all(_is_named(item, keys) for item in items)), ())


def _is_named(item: Any, keys: tuple[str, ...]) -> bool:
    return isinstance(item, dict) and all(item.get(key) not in (None, "", "<text>") for key in keys)


def _names(items: list[Any], keys: tuple[str, ...]) -> list[Any]:
    """Names, numbered where several items have one; otherwise places."""
    if not keys or not all(isinstance(item, dict) for item in items):
        return list(range(len(items)))
    lines = [" ".join(str(item.get(key)) for key in keys) for item in items]
    return [f"{name}#{n}" if (n := lines[:i].count(name)) else name for i, name in enumerate(lines)]


def _same(recorded: Any, ours: Any) -> bool:
    match recorded:
        case "<any>":
            return True
        case "<id>":
            return isinstance(ours, int | str)
        case "<text>":
            return isinstance(ours, str) and bool(ours)
        case "<time>":
            return isinstance(ours, str) and bool(re.match(r"\d{4}-\d\d-\d\dT", ours))
        case _:
            return type(recorded) is type(ours) and ERROR_NAMES.get(str(recorded), recorded) == ours

"""What flags refer to: strategy types, segments, context fields and tag types, those here and those the file brings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flagadmin.errors import Problem, choices
from importer.body.schemas import Data
from importer.plan.entries import Entries
from importer.plan.issues import Finding, Kind
from importer.plan.target import Target
from projects.context_fields.rules import context_field_problems
from projects.models import ContextField, Segment, StrategyType, TagType
from projects.segments.rules import segment_problems
from projects.strategies.constraint_rules import UnreadableValue, constraint_document
from projects.strategies.known_names import Vocabulary, load_vocabulary
from projects.tag_types.rules import tag_type_problems


@dataclass(slots=True)
class Words:
    """The vocabulary as it will be after the import.

    ``segment_ids`` leads from the file's segment ids to those here; a segment that the import makes has a negative id
    until it has a real one.
    """

    vocabulary: Vocabulary
    custom_types: frozenset[str] = frozenset()
    segment_ids: dict[float, int] = field(default_factory=dict)
    listed_segments: frozenset[float] = frozenset()
    new_segments: list[dict[str, Any]] = field(default_factory=list)
    new_fields: list[dict[str, Any]] = field(default_factory=list)
    new_tag_types: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_words(data: Data, target: Target, entries: Entries, used_tag_types: Iterable[str]) -> Words:
    """At most seven statements."""
    types = dict(StrategyType.objects.values_list("name", "built_in"))
    words = Words(load_vocabulary(target.project.id), frozenset(name for name in types if not types[name]))
    _context_fields(words, data.get("contextFields", []), target)
    _segments(words, data.get("segments", []), entries.segment_users(), target)
    _tag_types(words, data["tagTypes"], set(used_tag_types))
    return words


# Context fields --------------------------------------------------------------------------------------------


def _context_fields(words: Words, listed: list[Any], target: Target) -> None:
    names = [given["name"] for given in listed]
    present = {row.name: row for row in ContextField.objects.filter(name__in=names)} if names else {}
    legal = dict(words.vocabulary.legal_values)
    seen: set[str] = set()
    for index, given in enumerate(listed):
        path, name = f"data.contextFields[{index}]", given["name"]
        if name in seen:
            words.findings.append(
                Finding(Kind.VALUE, f"{path}.name", f"context field {name} is listed more than once")
            )
        elif name in present:
            _compare_field(words, path, given, present[name], target)
        else:
            _new_field(words, path, given, target)
            if values := _legal_values(given):
                legal[name] = frozenset(values)
        seen.add(name)
    words.vocabulary = replace(words.vocabulary, legal_values=legal)


def _legal_values(given: Any) -> list[str]:
    return [value["value"] for value in given.get("legalValues", [])]


def _compare_field(words: Words, path: str, given: Any, present: ContextField, target: Target) -> None:
    name = present.name
    if present.project_id not in (None, target.project.id):
        message = f"context field {name} belongs to another project"
        words.findings.append(Finding(Kind.CONTEXT_FIELD, f"{path}.name", message, item=name))
        return
    here = {value["value"] for value in present.legal_values}
    if unknown := [value for value in _legal_values(given) if value not in here]:
        values = (
            f"{choices(unknown)} {'is not a legal value' if len(unknown) == 1 else 'are not legal values'}"
        )
        message = f"{values} of context field {name} here"
        words.findings.append(Finding(Kind.CONTEXT_FIELD, f"{path}.legalValues", message, item=name))


def _new_field(words: Words, path: str, given: Any, target: Target) -> None:
    new = {
        "name": given["name"],
        "description": given.get("description"),
        "stickiness": given.get("stickiness", False),
        "sort_order": max(-(2**31), min(given.get("sortOrder", 0), 2**31 - 1)),
        "legal_values": given.get("legalValues", []),
        "project_id": target.project.id if given.get("project") else None,
    }
    words.findings += _findings(
        context_field_problems(ContextField(**new)), path, f"context field {new['name']}"
    )
    words.new_fields.append(new)


def _findings(problems: Iterable[Problem], path: str, subject: str) -> Iterator[Finding]:
    """What the rules of the API say of something new, at its place in the file."""
    for problem in problems:
        message = f"{subject[:120]}: {problem.message}"
        yield Finding(Kind.VALUE, f"{path}.{problem.path}", message)


# Segments --------------------------------------------------------------------------------------------------


def _segments(words: Words, listed: list[Any], users: Mapping[float, set[str]], target: Target) -> None:
    words.listed_segments = frozenset(given["id"] for given in listed)
    if not listed:
        return
    # Read together: one that was created since the vocabulary was read is here too, and not another project's.
    named = Segment.objects.filter(name__in={given["name"] for given in listed})
    stored = {row.name: row for row in named.only("name", "project_id", "constraints")}
    here = {name: row.id for name, row in stored.items() if row.project_id in (None, target.project.id)}
    for index, given in enumerate(listed):
        path = f"data.segments[{index}]"
        if words.segment_ids.get(given["id"], here.get(given["name"])) != here.get(given["name"]):
            words.findings.append(
                Finding(Kind.VALUE, f"{path}.id", f"segment id {given['id']} is listed twice")
            )
        elif given["name"] in here:
            words.segment_ids[given["id"]] = here[given["name"]]
            if given["name"] in stored:  # else it is new, and listed twice
                _compare_segment(words, given, stored[given["name"]].constraints)
        elif "constraints" in given and given["name"] not in stored:
            words.segment_ids[given["id"]] = here[given["name"]] = _new_segment(words, path, given, target)
        else:
            message = f"segment {given['name']} is not here."
            used = sorted(users.get(given["id"], ()))
            if used:
                message += f" Used by: {', '.join(used[:20])}. Create it, or exclude those flags."
            words.findings.append(
                Finding(Kind.SEGMENT, f"{path}.name", message, item=given["name"], users=tuple(used))
            )
    segments = {**words.vocabulary.segments, **{identifier: name for name, identifier in here.items()}}
    words.vocabulary = replace(words.vocabulary, segments=segments)


def _readable(problems: Iterable[Problem], path: str, words: Words) -> Iterator[Problem]:
    """Without the values that SDKs cannot read: these are kept, and noted."""
    for problem in problems:
        if isinstance(problem, UnreadableValue):
            words.notes.append(f"{problem.message} ({path}.{problem.path}).")
        else:
            yield problem


def _compare_segment(words: Words, given: Any, stored: Any) -> None:
    if "constraints" not in given:
        return
    if [constraint_document(constraint) for constraint in given["constraints"]] != stored:
        words.notes.append(f"Segment {given['name']} has other constraints here; it is left as it is here.")


def _new_segment(words: Words, path: str, given: Any, target: Target) -> int:
    identifier = -1 - len(words.new_segments)
    constraints = [constraint_document(constraint) for constraint in given["constraints"]]
    problems = segment_problems(
        Segment(name=given["name"], constraints=constraints),
        legal_values=words.vocabulary.legal_values,
        limits=target.limits,
    )
    words.findings += _findings(_readable(problems, path, words), path, f"segment {given['name']}")
    words.new_segments.append({"id": identifier, "name": given["name"], "constraints": constraints})
    return identifier


# Tag types -------------------------------------------------------------------------------------------------


def _tag_types(words: Words, listed: list[Any], used: set[str]) -> None:
    """Those that a tag of the file uses and that are not here. Of several with one name the last counts."""
    missing = used - words.vocabulary.tag_types
    new: dict[str, Any] = {}
    unused = {given["name"] for given in listed} - used - words.vocabulary.tag_types
    words.notes += [
        f"Tag type {name} is not here and no tag uses it: it is not created." for name in sorted(unused)
    ]
    for index, given in enumerate(listed):
        if given["name"] not in missing:
            continue
        tag_type = {
            "name": given["name"],
            "description": given.get("description", ""),
            "icon": given.get("icon"),
            "color": given.get("color"),
        }
        problems = tag_type_problems(TagType(**tag_type))
        words.findings += _findings(problems, f"data.tagTypes[{index}]", f"tag type {given['name']}")
        new[given["name"]] = tag_type
    words.new_tag_types = list(new.values())
    words.vocabulary = replace(words.vocabulary, tag_types=words.vocabulary.tag_types | new.keys())

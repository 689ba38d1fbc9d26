"""Resolves names that imported flags use: strategy types, segments, context fields and tag types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flagadmin.core.errors import Problem, choices
from flagadmin.core.unreadable_values import UnreadableValue
from importer.plan.entries import Entries
from importer.plan.target import Issue, IssueKind, Target
from projects.context_fields.actions import context_field_problems
from projects.models import ContextField, Segment, StrategyType, TagType
from projects.segments.rules import segment_problems
from projects.strategies.constraint_rules import make_constraint
from projects.strategies.known_names import KnownNames, load_known_names
from projects.tag_types.rules import tag_type_problems


@dataclass(slots=True)
class References:
    """The stored and new objects that imported flags use. ``known`` has the names that exist after the import.

    ``segment_ids`` maps segment ids in the file to stored ones. A segment that the import creates has a
    negative id until it is stored.
    """

    known: KnownNames
    custom_strategy_types: frozenset[str] = frozenset()
    segment_ids: dict[float, int] = field(default_factory=dict)
    listed_segments: frozenset[float] = frozenset()
    new_segments: list[dict[str, Any]] = field(default_factory=list)
    new_fields: list[dict[str, Any]] = field(default_factory=list)
    new_tag_types: list[dict[str, Any]] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def state(self) -> list[Any]:
        """The references that a plan depends on, for its fingerprint."""
        return [
            sorted(self.known.strategy_types),
            [[name, sorted(values)] for name, values in sorted(self.known.legal_values.items())],
            sorted((float(key), value) for key, value in self.segment_ids.items()),
            [self.new_fields, self.new_tag_types, self.new_segments],
        ]


def resolve_references(entries: Entries, target: Target, used_tag_types: set[str]) -> References:
    """The references of the entries, read in at most seven statements."""
    types = StrategyType.objects.filter(built_in=False).values_list("name", flat=True)
    references = References(load_known_names(target.project.id), frozenset(types))
    _resolve_context_fields(references, entries.context_fields, target)
    _resolve_segments(references, entries.segments, entries.segment_users(), target)
    _resolve_tag_types(references, entries.tag_types, used_tag_types)
    return references


# Context fields --------------------------------------------------------------------------------------------


def _resolve_context_fields(references: References, context_fields: Sequence[Any], target: Target) -> None:
    names = [context_field["name"] for context_field in context_fields]
    stored = {row.name: row for row in ContextField.objects.filter(name__in=names)} if names else {}
    legal = dict(references.known.legal_values)
    seen: set[str] = set()
    for index, context_field in enumerate(context_fields):
        path, name = f"data.contextFields[{index}]", context_field["name"]
        if name in seen:
            message = f"context field {name} is listed more than once"
            references.issues.append(Issue(IssueKind.VALUE, f"{path}.name", message))
        elif name in stored:
            references.issues += _find_context_field_issues(path, context_field, stored[name], target)
            if context_field.get("stickiness") and not stored[name].stickiness:
                references.notes.append(
                    f"Context field {name} is used for stickiness in the file, but not here. It is not changed."
                )
        else:
            _add_context_field(references, path, context_field, target)
            if values := _list_legal_values(context_field):
                legal[name] = frozenset(values)
        seen.add(name)
    references.known = replace(references.known, legal_values=legal)


def _list_legal_values(context_field: Any) -> list[str]:
    return [value["value"] for value in context_field.get("legalValues", [])]


def _find_context_field_issues(
    path: str, context_field: Any, stored: ContextField, target: Target
) -> Iterator[Issue]:
    """A stored context field must be usable in the project and have all legal values given in the file."""
    name = stored.name
    if stored.project_id not in (None, target.project.id):
        message = f"context field {name} belongs to another project"
        yield Issue(IssueKind.CONTEXT_FIELD, f"{path}.name", message, item=name)
        return
    legal = {value["value"] for value in stored.legal_values}
    if unknown := [value for value in _list_legal_values(context_field) if value not in legal]:
        are_not = "is not a legal value" if len(unknown) == 1 else "are not legal values"
        message = f"{choices(unknown)} {are_not} of context field {name}"
        yield Issue(IssueKind.CONTEXT_FIELD, f"{path}.legalValues", message, item=name)


def _add_context_field(references: References, path: str, context_field: Any, target: Target) -> None:
    new = {
        "name": context_field["name"],
        "description": context_field.get("description"),
        "stickiness": context_field.get("stickiness", False),
        "sort_order": max(-(2**31), min(context_field.get("sortOrder", 0), 2**31 - 1)),
        "legal_values": context_field.get("legalValues", []),
        "project_id": target.project.id if context_field.get("project") else None,
    }
    problems = context_field_problems(ContextField(**new))
    references.issues += _convert_problems(problems, path, f"context field {new['name']}")
    references.new_fields.append(new)


def _convert_problems(problems: Iterable[Problem], path: str, subject: str) -> Iterator[Issue]:
    """Converts the problems of a new item to issues with paths in the file."""
    for problem in problems:
        message = f"{subject[:120]}: {problem.message}"
        yield Issue(IssueKind.VALUE, f"{path}.{problem.path}", message)


# Segments --------------------------------------------------------------------------------------------------


def _resolve_segments(
    references: References, file_segments: Sequence[Any], users: Mapping[float, set[str]], target: Target
) -> None:
    references.listed_segments = frozenset(segment["id"] for segment in file_segments)
    if not file_segments:
        return
    # One query for both names and ids: another request may create or move a segment between two queries.
    same_name = Segment.objects.filter(name__in={segment["name"] for segment in file_segments})
    stored = {row.name: row for row in same_name.only("name", "project_id", "constraints")}
    ids = {name: row.id for name, row in stored.items() if row.project_id in (None, target.project.id)}
    for index, segment in enumerate(file_segments):
        path, name = f"data.segments[{index}]", segment["name"]
        if references.segment_ids.get(segment["id"], ids.get(name)) != ids.get(name):
            message = f"segment id {segment['id']} is listed more than once"
            references.issues.append(Issue(IssueKind.VALUE, f"{path}.id", message))
        elif name in ids:
            references.segment_ids[segment["id"]] = ids[name]
            if name in stored:
                _compare_segment(references, segment, stored[name].constraints)
            else:
                references.issues += _find_repeated_segment(references, path, segment)
        elif "constraints" in segment and name not in stored:
            references.segment_ids[segment["id"]] = ids[name] = _add_segment(
                references, path, segment, target
            )
        else:
            references.issues.append(
                _make_missing_segment_issue(path, name, sorted(users.get(segment["id"], ())))
            )
    segments = {**references.known.segments, **{identifier: name for name, identifier in ids.items()}}
    references.known = replace(references.known, segments=segments)


def _make_missing_segment_issue(path: str, name: str, used_by: Sequence[str]) -> Issue:
    message = f"segment {name} does not exist."
    if used_by:
        message += f" Used by: {', '.join(used_by[:20])}. Create it, or exclude these flags."
    return Issue(IssueKind.SEGMENT, f"{path}.name", message, item=name, users=tuple(used_by))


def _compare_segment(references: References, segment: Any, stored: Any) -> None:
    if "constraints" not in segment:
        return
    if [make_constraint(constraint) for constraint in segment["constraints"]] != stored:
        message = (
            f"The stored segment {segment['name']} has other constraints than the file and stays unchanged."
        )
        references.notes.append(message)


def _find_repeated_segment(references: References, path: str, segment: Any) -> Iterator[Issue]:
    """An earlier entry of the file creates a segment of this name, which must have the same constraints."""
    constraints = [make_constraint(constraint) for constraint in segment.get("constraints", ())]
    earlier = next(new for new in references.new_segments if new["name"] == segment["name"])
    if "constraints" in segment and constraints != earlier["constraints"]:
        message = f"segment {segment['name']} is listed more than once, with other constraints"
        yield Issue(IssueKind.VALUE, f"{path}.name", message)


def _add_segment(references: References, path: str, segment: Any, target: Target) -> int:
    identifier = -1 - len(references.new_segments)
    constraints = [make_constraint(constraint) for constraint in segment["constraints"]]
    problems = segment_problems(
        Segment(name=segment["name"], constraints=constraints),
        legal_values=references.known.legal_values,
        limits=target.limits,
    )
    readable = _note_unreadable_values(problems, path, references)
    references.issues += _convert_problems(readable, path, f"segment {segment['name']}")
    references.new_segments.append({"id": identifier, "name": segment["name"], "constraints": constraints})
    return identifier


def _note_unreadable_values(
    problems: Iterable[Problem], path: str, references: References
) -> Iterator[Problem]:
    """Adds a note for each value that SDKs cannot read. It is imported unchanged."""
    for problem in problems:
        if isinstance(problem, UnreadableValue):
            references.notes.append(f"{problem.message} ({path}.{problem.path}).")
        else:
            yield problem


# Tag types -------------------------------------------------------------------------------------------------


def _resolve_tag_types(references: References, tag_types: Sequence[Any], used: set[str]) -> None:
    """Adds the missing tag types that tags in the file use. If several have the same name, the last wins."""
    missing = used - references.known.tag_types
    unused = {tag_type["name"] for tag_type in tag_types} - used - references.known.tag_types
    references.notes += [f"Tag type {name} is not created because no tag uses it." for name in sorted(unused)]
    new: dict[str, Any] = {}
    for index, tag_type in enumerate(tag_types):
        if tag_type["name"] not in missing:
            continue
        new_type = {
            "name": tag_type["name"],
            "description": tag_type.get("description", ""),
            "icon": tag_type.get("icon"),
            "color": tag_type.get("color"),
        }
        problems = tag_type_problems(TagType(**new_type))
        references.issues += _convert_problems(
            problems, f"data.tagTypes[{index}]", f"tag type {new_type['name']}"
        )
        if new.get(tag_type["name"], new_type) != new_type:
            references.notes.append(f"Tag type {tag_type['name']} is listed more than once: the last counts.")
        new[tag_type["name"]] = new_type
    references.new_tag_types = list(new.values())
    references.known = replace(references.known, tag_types=references.known.tag_types | new.keys())

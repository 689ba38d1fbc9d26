"""Resolves names that imported flags use: strategy types, segments, context fields and tag types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flagadmin.core.errors import Problem, choices
from flagadmin.core.unreadable_values import UnreadableValue
from importer.plan.entries import Entries
from importer.plan.issues import Issue, IssueKind
from importer.plan.target import Target
from projects.context_fields.rules import context_field_problems
from projects.models import ContextField, Segment, StrategyType, TagType
from projects.segments.rules import segment_problems
from projects.strategies.constraint_rules import constraint_document
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
    _context_fields(references, entries.context_fields, target)
    _segments(references, entries.segments, entries.segment_users(), target)
    _tag_types(references, entries.tag_types, used_tag_types)
    return references


# Context fields --------------------------------------------------------------------------------------------


def _context_fields(references: References, listed: Sequence[Any], target: Target) -> None:
    names = [given["name"] for given in listed]
    stored = {row.name: row for row in ContextField.objects.filter(name__in=names)} if names else {}
    legal = dict(references.known.legal_values)
    seen: set[str] = set()
    for index, given in enumerate(listed):
        path, name = f"data.contextFields[{index}]", given["name"]
        if name in seen:
            message = f"context field {name} is listed more than once"
            references.issues.append(Issue(IssueKind.VALUE, f"{path}.name", message))
        elif name in stored:
            references.issues += _context_field_issues(path, given, stored[name], target)
            if given.get("stickiness") and not stored[name].stickiness:
                references.notes.append(
                    f"Context field {name} is used for stickiness in the file, but not here. It is not changed."
                )
        else:
            _add_context_field(references, path, given, target)
            if values := _legal_values(given):
                legal[name] = frozenset(values)
        seen.add(name)
    references.known = replace(references.known, legal_values=legal)


def _legal_values(given: Any) -> list[str]:
    return [value["value"] for value in given.get("legalValues", [])]


def _context_field_issues(path: str, given: Any, stored: ContextField, target: Target) -> Iterator[Issue]:
    """A stored context field must be usable in the project and have all legal values given in the file."""
    name = stored.name
    if stored.project_id not in (None, target.project.id):
        message = f"context field {name} belongs to another project"
        yield Issue(IssueKind.CONTEXT_FIELD, f"{path}.name", message, item=name)
        return
    legal = {value["value"] for value in stored.legal_values}
    if unknown := [value for value in _legal_values(given) if value not in legal]:
        are_not = "is not a legal value" if len(unknown) == 1 else "are not legal values"
        message = f"{choices(unknown)} {are_not} of context field {name}"
        yield Issue(IssueKind.CONTEXT_FIELD, f"{path}.legalValues", message, item=name)


def _add_context_field(references: References, path: str, given: Any, target: Target) -> None:
    new = {
        "name": given["name"],
        "description": given.get("description"),
        "stickiness": given.get("stickiness", False),
        "sort_order": max(-(2**31), min(given.get("sortOrder", 0), 2**31 - 1)),
        "legal_values": given.get("legalValues", []),
        "project_id": target.project.id if given.get("project") else None,
    }
    problems = context_field_problems(ContextField(**new))
    references.issues += _issues(problems, path, f"context field {new['name']}")
    references.new_fields.append(new)


def _issues(problems: Iterable[Problem], path: str, subject: str) -> Iterator[Issue]:
    """Converts the problems of a new item to issues with paths in the file."""
    for problem in problems:
        message = f"{subject[:120]}: {problem.message}"
        yield Issue(IssueKind.VALUE, f"{path}.{problem.path}", message)


# Segments --------------------------------------------------------------------------------------------------


def _segments(
    references: References, listed: Sequence[Any], users: Mapping[float, set[str]], target: Target
) -> None:
    references.listed_segments = frozenset(given["id"] for given in listed)
    if not listed:
        return
    # One query for both names and ids: another request may create or move a segment between two queries.
    named = Segment.objects.filter(name__in={given["name"] for given in listed})
    stored = {row.name: row for row in named.only("name", "project_id", "constraints")}
    ids = {name: row.id for name, row in stored.items() if row.project_id in (None, target.project.id)}
    for index, given in enumerate(listed):
        path, name = f"data.segments[{index}]", given["name"]
        if references.segment_ids.get(given["id"], ids.get(name)) != ids.get(name):
            message = f"segment id {given['id']} is listed more than once"
            references.issues.append(Issue(IssueKind.VALUE, f"{path}.id", message))
        elif name in ids:
            references.segment_ids[given["id"]] = ids[name]
            if name in stored:  # otherwise an earlier entry of the file creates it
                _compare_segment(references, given, stored[name].constraints)
        elif "constraints" in given and name not in stored:
            references.segment_ids[given["id"]] = ids[name] = _add_segment(references, path, given, target)
        else:
            references.issues.append(_missing_segment(path, name, sorted(users.get(given["id"], ()))))
    segments = {**references.known.segments, **{identifier: name for name, identifier in ids.items()}}
    references.known = replace(references.known, segments=segments)


def _missing_segment(path: str, name: str, used_by: Sequence[str]) -> Issue:
    message = f"segment {name} does not exist."
    if used_by:
        message += f" Used by: {', '.join(used_by[:20])}. Create it, or exclude these flags."
    return Issue(IssueKind.SEGMENT, f"{path}.name", message, item=name, users=tuple(used_by))


def _compare_segment(references: References, given: Any, stored: Any) -> None:
    if "constraints" not in given:
        return
    if [constraint_document(constraint) for constraint in given["constraints"]] != stored:
        message = (
            f"The stored segment {given['name']} has other constraints than the file and stays unchanged."
        )
        references.notes.append(message)


def _add_segment(references: References, path: str, given: Any, target: Target) -> int:
    identifier = -1 - len(references.new_segments)
    constraints = [constraint_document(constraint) for constraint in given["constraints"]]
    problems = segment_problems(
        Segment(name=given["name"], constraints=constraints),
        legal_values=references.known.legal_values,
        limits=target.limits,
    )
    readable = _note_unreadable_values(problems, path, references)
    references.issues += _issues(readable, path, f"segment {given['name']}")
    references.new_segments.append({"id": identifier, "name": given["name"], "constraints": constraints})
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


def _tag_types(references: References, listed: Sequence[Any], used: set[str]) -> None:
    """Adds the missing tag types that tags in the file use. Of several with the same name, the last wins."""
    missing = used - references.known.tag_types
    unused = {given["name"] for given in listed} - used - references.known.tag_types
    references.notes += [f"Tag type {name} is not created because no tag uses it." for name in sorted(unused)]
    new: dict[str, Any] = {}
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
        references.issues += _issues(problems, f"data.tagTypes[{index}]", f"tag type {given['name']}")
        new[given["name"]] = tag_type
    references.new_tag_types = list(new.values())
    references.known = replace(references.known, tag_types=references.known.tag_types | new.keys())

"""Writes shared objects: environments, tag types, types of strategies and flags, context fields, segments."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from flagadmin.core.errors import ValidationError, choices
from importer.moving.leave_out import Choice
from importer.moving.reading.installation import Installation
from importer.moving.reading.shapes import (
    SourceEnvironment,
    SourceField,
    SourceFlagType,
    SourceSegment,
    SourceStrategyType,
    SourceTag,
    SourceTagType,
)
from importer.moving.report import Kind, Line
from importer.moving.writing.keeping import DELETED, SYSTEM, Edits, keep, try_alone
from projects.context_fields.actions import create_context_field, update_context_field
from projects.environments.actions import create_environment, update_environment
from projects.flags.types.actions import set_lifetime
from projects.models import ContextField, Environment, FlagType, Segment, StrategyType, TagType
from projects.projects.queries import make_environment_document
from projects.segments.actions import create_segment, update_segment
from projects.strategies.strategy_types import create_strategy_type, update_strategy_type
from projects.tag_types.actions import create_tag, create_tag_type, list_known_tags, update_tag_type


def move_shared(installation: Installation, edits: Edits) -> Iterator[Line]:
    for environment in installation.environments:
        yield from _move("environment", environment, _move_environment, edits)
    for tag_type in installation.tag_types:
        yield from _move("tag-type", tag_type, _move_tag_type, edits)
    for strategy_type in installation.strategy_types:
        yield from _move("strategy-type", strategy_type, _move_strategy_type, edits)
    for flag_type in installation.flag_types:
        yield from _move_flag_type(flag_type, edits)
    for field in installation.fields:
        yield from move_field(field, None, edits)
    for segment in installation.segments:
        if segment.project is None:
            yield from move_segment(segment, edits)


def _move(
    kind: str, read: Any, move: Callable[[Any, Edits], Iterator[Line]], edits: Edits, project: str = ""
) -> list[Line]:
    """Moves an object. If that fails, the whole move is refused until the user leaves it out."""
    choice = Choice(kind, read.name)
    return try_alone(choice.subject, lambda: move(read, edits), project, choice=str(choice))


def _move_environment(environment: SourceEnvironment, edits: Edits) -> Iterator[Line]:
    name = environment.name
    values = {
        "type": environment.type,
        "enabled": environment.enabled,
        "sort_order": environment.sort_order,
    }
    return keep(
        f"environment {name}",
        Environment.objects.filter(name=name).first(),
        make_environment_document,
        create=partial(create_environment, values | {"name": name}, caller=SYSTEM),
        update=partial(update_environment, name, values, caller=SYSTEM),
        is_edited=edits.has("environment-", name),
    )


def _move_tag_type(tag_type: SourceTagType, edits: Edits) -> Iterator[Line]:
    name = tag_type.name
    values = {"description": tag_type.description or "", "icon": tag_type.icon, "color": tag_type.color}
    return keep(
        f"tag type {name}",
        TagType.objects.filter(name=name).first(),
        TagType.document,
        create=partial(create_tag_type, values | {"name": name}, caller=SYSTEM),
        update=partial(update_tag_type, name, values, caller=SYSTEM),
        is_edited=edits.has("tag-type-", name),
    )


def _move_strategy_type(kind: SourceStrategyType, edits: Edits) -> Iterator[Line]:
    present = StrategyType.objects.filter(name=kind.name).first()
    if present is not None and present.built_in:
        return
    if not kind.editable:
        detail = (
            "is built in there and unknown here: it comes as a type of your own, which only SDKs evaluate"
        )
        yield Line(Kind.NOTE, f"strategy type {kind.name}", detail)
    values = {
        "title": kind.title or "",
        "description": kind.description or "",
        "parameters": kind.parameters,
        "deprecated": kind.deprecated,
    }
    yield from keep(
        f"strategy type {kind.name}",
        present,
        StrategyType.document,
        create=partial(create_strategy_type, values | {"name": kind.name}, caller=SYSTEM),
        update=partial(update_strategy_type, kind.name, values, caller=SYSTEM),
        is_edited=edits.has("strategy-", kind.name),
    )


def _move_flag_type(flag_type: SourceFlagType, edits: Edits) -> Iterator[Line]:
    """Moves a flag type. Their number is fixed, but their expected lifetime can be set."""
    subject = f"flag type {flag_type.id}"
    present = FlagType.objects.filter(pk=flag_type.id).first()
    if present is None:
        return iter([Line(Kind.CANNOT, subject, "is unknown here")])

    def update() -> Any:
        return set_lifetime(flag_type.id, flag_type.lifetime_days or None, caller=SYSTEM)

    return keep(
        subject,
        present,
        lambda row: {"lifetimeDays": row.lifetime_days},
        create=update,
        update=update,
        is_edited=edits.has("feature-type-", flag_type.id),
    )


def move_field(field: SourceField, project: str | None, edits: Edits) -> list[Line]:
    return _move("context-field", field, partial(_move_field, project=project), edits, project or "")


def _move_field(field: SourceField, edits: Edits, *, project: str | None) -> Iterator[Line]:
    present = ContextField.objects.filter(name=field.name).first()
    subject = f"context field {field.name}"
    if present is not None and present.project_id != project:
        owner = f"project {present.project_id}" if present.project_id else "all projects"
        raise ValidationError.at("project", f"belongs to {owner} here")
    values: dict[str, Any] = {
        "description": field.description,
        "stickiness": field.stickiness,
        "sort_order": field.sort_order,
        "legal_values": field.legal_values,
    }
    return keep(
        subject,
        present,
        ContextField.document,
        create=partial(
            create_context_field, values | {"name": field.name, "project_id": project}, caller=SYSTEM
        ),
        update=partial(update_context_field, field.name, values, caller=SYSTEM, project=project),
        is_edited=edits.has("context-field-", field.name),
        project=project or "",
    )


def move_segment(segment: SourceSegment, edits: Edits) -> list[Line]:
    return _move("segment", segment, _move_segment, edits, segment.project or "")


def _move_segment(segment: SourceSegment, edits: Edits) -> Iterator[Line]:
    present = Segment.objects.filter(name=segment.name).first()
    values: dict[str, Any] = {
        "description": segment.description,
        "constraints": [each.model_dump(exclude_unset=True) for each in segment.constraints],
    }
    # A field that all projects can use here stays available to them.
    if present is None or present.project_id:
        values["project_id"] = segment.project
    return keep(
        f"segment {segment.name}",
        present,
        Segment.document,
        create=partial(create_segment, values | {"name": segment.name}, caller=SYSTEM),
        update=partial(update_segment, present.pk if present else 0, values, caller=SYSTEM),
        is_edited=edits.has("segment-", segment.name),
        project=segment.project or "",
    )


def move_tags(installation: Installation, edits: Edits) -> Iterator[Line]:
    """Moves the tags that no flag has."""
    known = {*list_known_tags(SYSTEM)}
    for tag in installation.tags:
        subject = f"tag {tag.type}:{tag.value}"
        if (tag.type, tag.value) in known:
            continue
        if edits.has("tag-", f"{tag.type}:{tag.value}"):
            yield Line(Kind.CONFLICT, subject, DELETED)
        else:
            yield from try_alone(subject, partial(_create_tag, tag, subject))


def _create_tag(tag: SourceTag, subject: str) -> Iterator[Line]:
    create_tag(tag.type, tag.value, caller=SYSTEM)
    yield Line(Kind.CREATE, subject)


class SegmentIds:
    """Ids here by ids there."""

    def __init__(self, installation: Installation) -> None:
        self._names = installation.segment_names
        rows = Segment.objects.filter(name__in=self._names.values())
        self._ids = dict(rows.values_list("name", "id"))

    def translate(self, ids: Iterable[int]) -> list[int]:
        """Raises ValidationError for a missing segment: without it, a strategy would apply to more users."""
        names = [self._names.get(key, f"{key}") for key in ids]
        if missing := [name for name in names if name not in self._ids]:
            raise ValidationError.at("segments", f"segment {choices(missing)} is not here")
        return [self._ids[name] for name in names]

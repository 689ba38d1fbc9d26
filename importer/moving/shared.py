"""Writes what projects share: environments, tag types, types of strategies and flags, context fields, segments."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from importer.moving.edits import Edits
from importer.moving.installation import Installation
from importer.moving.keeping import DELETED, SYSTEM, Refused, keep, try_alone
from importer.moving.report import Kind, Line
from importer.moving.shapes import SourceField, SourceFlagType, SourceSegment, SourceTag
from projects.context_fields.actions import create_context_field, update_context_field
from projects.context_fields.documents import context_field_document
from projects.environments.actions import create_environment, update_environment
from projects.flags.types.actions import set_lifetime
from projects.models import ContextField, Environment, FlagType, Segment, StrategyType, TagType
from projects.projects.queries import environment_document
from projects.segments.actions import create_segment, update_segment
from projects.segments.documents import segment_document
from projects.strategies.strategy_type_documents import strategy_type_document
from projects.strategies.strategy_types import create_strategy_type, update_strategy_type
from projects.tag_types.actions import create_tag_type, update_tag_type
from projects.tag_types.documents import tag_type_document
from projects.tag_types.tags import create_tag, known_tags


def move_shared(installation: Installation, edits: Edits) -> Iterator[Line]:
    yield from _move_environments(installation, edits)
    yield from _move_tag_types(installation, edits)
    yield from _move_strategy_types(installation, edits)
    for flag_type in installation.flag_types:
        yield from _move_flag_type(flag_type, edits)
    for field in installation.fields:
        yield from move_field(field, None, edits)
    for segment in installation.segments:
        if segment.project is None:
            yield from move_segment(segment, edits)


def _move_environments(installation: Installation, edits: Edits) -> Iterator[Line]:
    for environment in installation.environments:
        name = environment.name
        values = {
            "type": environment.type,
            "enabled": environment.enabled,
            "sort_order": environment.sort_order,
        }
        yield from keep(
            f"environment {name}",
            Environment.objects.filter(name=name).first(),
            environment_document,
            create=partial(create_environment, values | {"name": name}, caller=SYSTEM),
            update=partial(update_environment, name, values, caller=SYSTEM),
            is_edited=edits.has("environment-", name),
        )


def _move_tag_types(installation: Installation, edits: Edits) -> Iterator[Line]:
    for tag_type in installation.tag_types:
        name = tag_type.name
        values = {"description": tag_type.description or "", "icon": tag_type.icon, "color": tag_type.color}
        yield from keep(
            f"tag type {name}",
            TagType.objects.filter(name=name).first(),
            tag_type_document,
            create=partial(create_tag_type, values | {"name": name}, caller=SYSTEM),
            update=partial(update_tag_type, name, values, caller=SYSTEM),
            is_edited=edits.has("tag-type-", name),
        )


def _move_strategy_types(installation: Installation, edits: Edits) -> Iterator[Line]:
    for kind in installation.strategy_types:
        present = StrategyType.objects.filter(name=kind.name).first()
        if present is not None and present.built_in:
            continue
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
            strategy_type_document,
            create=partial(create_strategy_type, values | {"name": kind.name}, caller=SYSTEM),
            update=partial(update_strategy_type, kind.name, values, caller=SYSTEM),
            is_edited=edits.has("strategy-", kind.name),
        )


def _move_flag_type(flag_type: SourceFlagType, edits: Edits) -> Iterator[Line]:
    """There is a fixed number of them. Their expected lifetime can be set."""
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


def move_field(field: SourceField, project: str | None, edits: Edits) -> Iterator[Line]:
    present = ContextField.objects.filter(name=field.name).first()
    subject = f"context field {field.name}"
    if present is not None and present.project_id != project:
        owner = f"project {present.project_id}" if present.project_id else "all projects"
        raise Refused([Line(Kind.REFUSE, subject, f"belongs to {owner} here", project or "")])
    values: dict[str, Any] = {
        "description": field.description,
        "stickiness": field.stickiness,
        "sort_order": field.sort_order,
        "legal_values": field.legal_values,
    }
    return keep(
        subject,
        present,
        context_field_document,
        create=partial(
            create_context_field, values | {"name": field.name, "project_id": project}, caller=SYSTEM
        ),
        update=partial(update_context_field, field.name, values, caller=SYSTEM, project=project),
        is_edited=edits.has("context-field-", field.name),
        project=project or "",
    )


def move_segment(segment: SourceSegment, edits: Edits) -> Iterator[Line]:
    present = Segment.objects.filter(name=segment.name).first()
    values: dict[str, Any] = {
        "description": segment.description,
        "constraints": [each.model_dump(exclude_unset=True) for each in segment.constraints],
    }
    # One that all projects may use here is not taken away from them.
    if present is None or present.project_id:
        values["project_id"] = segment.project
    return keep(
        f"segment {segment.name}",
        present,
        segment_document,
        create=partial(create_segment, values | {"name": segment.name}, caller=SYSTEM),
        update=partial(update_segment, present.pk if present else 0, values, caller=SYSTEM),
        is_edited=edits.has("segment-", segment.name),
        project=segment.project or "",
    )


def move_tags(installation: Installation, edits: Edits) -> Iterator[Line]:
    """Those that no flag has."""
    known = {*known_tags(SYSTEM)}
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


def read_segment_ids(installation: Installation) -> dict[int, int]:
    """Ids here by ids there."""
    names = {segment.name: segment.id for segment in installation.segments}
    rows = Segment.objects.filter(name__in=names).values_list("name", "id")
    return {names[name]: row for name, row in rows}

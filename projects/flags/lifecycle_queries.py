"""Reads the lifecycle stages of flags."""

from collections.abc import Sequence
from typing import Any

from flagadmin.http.timestamps import iso
from projects.models import Flag, LifecycleStage

Document = dict[str, Any]
ORDER = LifecycleStage.Stage.values


def lifecycle_document(flag: Flag) -> list[Document]:
    """All stages that the flag has entered, in lifecycle order."""
    return [_stage(row) for row in _in_order([flag.pk])]


def current_stage(flag: Flag) -> LifecycleStage | None:
    """The last stage that the flag has entered."""
    return next(reversed(_in_order([flag.pk])), None)


def current_stages(ids: Sequence[int]) -> dict[int, Document]:
    """The current stage of each of these flags: the last one it entered. One query."""
    return {row.flag_id: _stage(row) for row in _in_order(ids)}


def _in_order(ids: Sequence[int]) -> list[LifecycleStage]:
    return sorted(LifecycleStage.objects.filter(flag_id__in=ids), key=lambda row: ORDER.index(row.stage))


def _stage(row: LifecycleStage) -> Document:
    stage = {"stage": row.stage, "enteredStageAt": iso(row.entered_at)}
    return stage | ({"status": row.status} if row.status else {})

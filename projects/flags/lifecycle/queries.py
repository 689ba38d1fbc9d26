"""Reads the lifecycle stages of flags."""

from collections.abc import Sequence

from django.db.models import Case, Count, Max, Q, Value, When

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.models import Flag, FlagQuerySet, LifecycleStage

Stage = LifecycleStage.Stage
ORDER = Stage.values
STAGE_MEMBERS = {stage: "preLive" if stage == Stage.PRE_LIVE else str(stage) for stage in ORDER}
"""The stages as members of objects."""


def read_lifecycle(flag: Flag) -> list[Document]:
    """All stages that the flag has entered, in lifecycle order."""
    return [make_stage_document(row) for row in _read_in_order([flag.pk])]


def read_current_stage(flag: Flag) -> LifecycleStage | None:
    """The last stage that the flag has entered."""
    return next(reversed(_read_in_order([flag.pk])), None)


def read_current_stages(ids: Sequence[int]) -> dict[int, Document]:
    """The current stage of each of these flags: the last one it entered. One query."""
    return {row.flag_id: make_stage_document(row) for row in _read_in_order(ids)}


def count_stages(flags: FlagQuerySet) -> dict[str, int]:
    """The number of these flags by their current stage, as a member. Every stage has an entry. Two queries."""
    ranks = Case(*(When(stage=stage, then=Value(rank)) for rank, stage in enumerate(ORDER)))
    active = LifecycleStage.objects.filter(flag__in=flags.active()).order_by()
    last = active.values("flag").annotate(rank=Max(ranks))
    counts = last.aggregate(
        **{STAGE_MEMBERS[stage]: Count("flag", filter=Q(rank=rank)) for rank, stage in enumerate(ORDER)}
    )
    return counts | {"archived": flags.archived().count()}


def _read_in_order(ids: Sequence[int]) -> list[LifecycleStage]:
    return sorted(LifecycleStage.objects.filter(flag_id__in=ids), key=lambda row: ORDER.index(row.stage))


def make_stage_document(row: LifecycleStage) -> Document:
    stage = {"stage": row.stage, "enteredStageAt": iso(row.entered_at)}
    return stage | ({"status": row.status} if row.status else {})

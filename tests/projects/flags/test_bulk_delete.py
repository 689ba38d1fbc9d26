"""Deleting archived flags with all their data, in a fixed number of SQL statements."""

import pytest
from django.db import connection
from django.db.models import CASCADE
from django.db.transaction import atomic
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import InvalidOperation
from projects.flags.archive.actions import remove_flags
from projects.models import (
    Dependency,
    FavoriteFlag,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    FlagLink,
    FlagTag,
    LifecycleStage,
    Segment,
    Strategy,
    StrategySegment,
)
from projects.revision import read_revisions
from tests.support.flags import add_strategy, depend, make_flag


def furnished(name, people):
    """An archived flag with one of everything on it."""
    flag = make_flag(name, archived=True)
    strategy = add_strategy(flag)
    segment, _ = Segment.objects.get_or_create(name="vip")
    StrategySegment.objects.create(strategy=strategy, segment=segment)
    FlagTag.objects.create(flag=flag, tag_type_id="simple", value="ab")
    FlagLink.objects.create(flag=flag, url="https://a.b")
    FlagLastSeen.objects.create(flag=flag, environment="development", seen_at=timezone.now())
    LifecycleStage.objects.create(flag=flag, stage="initial", entered_at=timezone.now())
    FavoriteFlag.objects.create(flag=flag, user=people["member"])
    return flag


def test_everything_on_them_goes_with_an_event_each_and_other_flags_stay(people, callers):
    gone = [furnished("a", people), furnished("b", people)]
    depend(*gone)
    kept = make_flag("kept")
    add_strategy(kept)
    before = read_revisions(["shop"])["shop"]
    with atomic():
        remove_flags(gone, caller=callers("owner"))
    assert read_revisions(["shop"])["shop"] > before
    events = AuditEvent.objects.order_by("id")
    assert [(e.type, e.feature, e.project, e.actor_name) for e in events] == [
        ("feature-deleted", "a", "shop", "owner"),
        ("feature-deleted", "b", "shop", "owner"),
    ]
    assert (events[0].before or {})["archived"] is True
    assert list(Flag.objects.values_list("name", flat=True)) == ["kept"]
    assert Strategy.objects.get().flag == kept
    assert set(FlagEnvironment.objects.values_list("flag", flat=True)) == {kept.pk}
    for model in (
        StrategySegment,
        FlagTag,
        FlagLink,
        FlagLastSeen,
        LifecycleStage,
        FavoriteFlag,
        Dependency,
    ):
        assert not model.objects.exists(), model
    assert Segment.objects.exists()


def test_a_parent_of_an_active_flag_stays(people, callers):
    parent, child = furnished("parent", people), make_flag("child")
    depend(child, parent)
    with pytest.raises(InvalidOperation) as refused, atomic():
        remove_flags([parent], caller=callers("owner"))
    assert "parent" in refused.value.message
    assert [p.as_dict() for p in refused.value.details] == [
        {"path": "parent", "message": "child depends on it"}
    ]
    assert Flag.objects.filter(name="parent").exists()


def test_an_archived_child_elsewhere_loses_its_parent(people, callers):
    parent, child = furnished("parent", people), make_flag("child", archived=True)
    depend(child, parent)
    with atomic():
        remove_flags([parent], caller=callers("owner"))
    assert list(Flag.objects.values_list("name", flat=True)) == ["child"]
    assert not Dependency.objects.exists()


def statements(flags, caller):
    with (
        CaptureQueriesContext(
            connection,
        ) as captured,
        atomic(),
    ):
        remove_flags(flags, caller=caller)
    return len(captured)


def tables_of(model):
    """One for each relation that is deleted with the model's rows."""
    yield model
    for relation in model._meta.related_objects:
        if getattr(relation, "on_delete", None) is CASCADE:
            yield from tables_of(relation.related_model)


def test_the_number_of_statements_does_not_grow(people, callers):
    one = statements([furnished("one", people)], callers("owner"))
    many = statements([furnished(f"f{i}", people) for i in range(25)], callers("owner"))
    assert many == one
    assert one <= 8 + len(list(tables_of(Flag)))

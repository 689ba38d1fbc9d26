"""Every write increases the revision of exactly the affected projects, in the same transaction."""

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

import projects.revision
from projects.models import (
    ChangedFlags,
    Dependency,
    Flag,
    FlagEnvironment,
    FlagLastSeen,
    Project,
    ProjectRevision,
    Segment,
    Strategy,
    StrategySegment,
)
from projects.revision import forget_changed_flags, read_changed_flags, read_revisions
from tests.support.cast import make_project
from tests.support.flags import make_flag

pytestmark = pytest.mark.django_db


class Watch:
    """Which projects' revisions have grown since the last look, and which flags have changed?"""

    def __init__(self):
        self.seen = read_revisions()

    def touched(self):
        before, self.seen = self.seen, read_revisions()
        return {project for project, number in self.seen.items() if number > before.get(project, 0)}

    def changed(self):
        before, self.seen = self.seen, read_revisions()
        return {project: names for project, names in read_changed_flags(before, self.seen).items() if names}


@pytest.fixture
def watch(shop):
    make_project("docs")
    make_flag("in-docs", "docs")
    return Watch()


def test_a_new_project_has_a_revision():
    watch = Watch()
    make_project("fresh")
    assert watch.touched() == {"fresh"}


def test_saved_flag(watch):
    flag = make_flag("a")
    assert watch.touched() == {"shop"}
    flag.stale = True
    flag.save()
    assert watch.touched() == {"shop"}
    flag.save()
    assert watch.touched() == set()  # without a change
    flag.delete()
    assert watch.touched() == {"shop"}


def test_bulk_create_and_update(watch):
    now = timezone.now()
    Flag.objects.bulk_create(Flag(name=f"b{n}", project_id="shop", created_at=now) for n in range(50))
    assert watch.touched() == {"shop"}
    Flag.objects.filter(project_id__in=["shop", "docs"]).update(description="changed")
    assert watch.touched() == {"shop", "docs"}
    Flag.objects.filter(name__startswith="b").delete()
    assert watch.touched() == {"shop"}


def test_moved_flag_touches_both_projects_and_raw_sql_its_own(watch):
    make_flag("a")
    watch.touched()
    Flag.objects.filter(name="a").update(project_id="docs")
    assert watch.touched() == {"shop", "docs"}
    with connection.cursor() as cursor:
        cursor.execute("UPDATE projects_flag SET archived_at = now() WHERE name = 'a'")
    assert watch.touched() == {"docs"}


def test_switch_and_variants(watch):
    flag = make_flag("a")
    flag.environments.all().delete()
    watch.touched()
    link = FlagEnvironment.objects.create(flag=flag, environment_id="production")
    assert watch.touched() == {"shop"}
    flag.environments.update(enabled=True)
    assert watch.touched() == {"shop"}
    link.refresh_from_db()
    link.variants = [{"name": "v"}]
    link.save()
    assert watch.touched() == {"shop"}


def test_strategies_and_their_segments(watch):
    flag, segment = make_flag("a"), Segment.objects.create(name="seg")
    watch.touched()
    strategy = Strategy.objects.create(flag=flag, environment_id="production", name="default")
    assert watch.touched() == {"shop"}
    StrategySegment.objects.create(strategy=strategy, segment=segment)
    assert watch.touched() == {"shop"}
    Segment.objects.update(description="no evaluation reads this")
    assert watch.touched() == set()
    Segment.objects.update(constraints=[{"contextName": "userId", "operator": "IN", "values": ["1"]}])
    assert watch.touched() == {"shop"}
    strategy.segments.clear()
    assert watch.touched() == {"shop"}
    Segment.objects.update(constraints=[])
    assert watch.touched() == set()
    Strategy.objects.all().delete()
    assert watch.touched() == {"shop"}


def test_dependencies(watch):
    child, parent = make_flag("child"), make_flag("parent")
    watch.touched()
    Dependency.objects.create(flag=child, parent=parent)
    assert watch.touched() == {"shop"}
    Dependency.objects.update(enabled=False)
    assert watch.touched() == {"shop"}


def test_what_no_evaluation_reads(watch):
    flag = make_flag("a")
    watch.touched()
    FlagLastSeen.objects.create(flag=flag, environment="production", seen_at=timezone.now())
    Project.objects.update(description="new words")
    assert watch.touched() == set()


def test_the_changed_flags_of_each_project(watch):
    flag, parent, segment = make_flag("a"), make_flag("parent"), Segment.objects.create(name="seg")
    assert watch.changed() == {"shop": {"a", "parent"}}
    strategy = Strategy.objects.create(flag=flag, environment_id="production", name="default")
    assert watch.changed() == {"shop": {"a"}}
    StrategySegment.objects.create(strategy=strategy, segment=segment)
    watch.changed()
    Segment.objects.update(constraints=[{"contextName": "userId", "operator": "IN", "values": ["1"]}])
    assert watch.changed() == {"shop": {"a"}}
    Flag.objects.filter(name="a").update(project_id="docs")
    assert watch.changed() == {"shop": {"a"}, "docs": {"a"}}
    Dependency.objects.create(flag=flag, parent=parent)
    assert watch.changed() == {"docs": {"a"}}
    Flag.objects.filter(name="a").update(project_id="shop")
    watch.changed()
    Flag.objects.filter(name="parent").update(name="renamed")
    assert watch.changed() == {"shop": {"a", "parent", "renamed"}}
    Flag.objects.filter(name="a").delete()
    assert watch.changed() == {"shop": {"a"}}


def test_changed_flags_are_unknown_once_one_revision_is(watch):
    before = read_revisions()
    make_flag("a")
    make_flag("b", "docs")
    now = read_revisions()
    assert read_changed_flags(before, now) == {"shop": {"a"}, "docs": {"b"}, "default": set()}
    assert read_changed_flags(before | {"shop": 0}, now).keys() == {"docs", "default"}  # not stored
    ProjectRevision.objects.filter(project_id="shop").update(revision=now["shop"] + 1)  # as after a restore
    assert read_changed_flags(before, read_revisions()).keys() == {"docs", "default"}


def test_many_changed_flags_are_not_listed(watch):
    at = timezone.now()
    Flag.objects.bulk_create(Flag(name=f"b{n}", project_id="shop", created_at=at) for n in range(201))
    assert watch.changed() == {}


def test_changed_flags_are_forgotten(watch, monkeypatch):
    before = read_revisions()
    make_flag("a")
    forget_changed_flags()
    assert read_changed_flags(before, read_revisions())["shop"] == {"a"}
    monkeypatch.setattr(projects.revision, "KEPT", 0)
    forget_changed_flags()
    assert read_changed_flags(before, read_revisions()) == {}


def test_a_deleted_project_leaves_no_revision_and_comes_back_newer(watch):
    before = read_revisions(["docs"])["docs"]
    Flag.objects.filter(project_id="docs").delete()
    Project.objects.filter(id="docs").delete()
    assert "docs" not in read_revisions()
    assert not ChangedFlags.objects.filter(project_id="docs").exists()
    make_project("docs")
    assert read_revisions(["docs"])["docs"] > before


@pytest.mark.django_db(transaction=True)
def test_nobody_sees_the_revision_before_the_commit(shop):
    before = read_revisions(["shop"])
    with transaction.atomic():
        make_flag("a")
        other = connections.create_connection("default")
        try:
            with other.cursor() as cursor:
                cursor.execute("SELECT revision FROM projects_projectrevision WHERE project_id = 'shop'")
                assert cursor.fetchone()[0] == before["shop"]
        finally:
            other.close()
    assert read_revisions(["shop"])["shop"] > before["shop"]

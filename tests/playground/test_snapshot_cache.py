"""A worker reuses parts of earlier snapshots only while they are up to date."""

import threading

import pytest
from django.db import connection
from django.utils import timezone

import playground.compile_ahead
import playground.snapshot_cache
import projects.definitions
from playground.compile_ahead import pause_between, prepare
from playground.snapshot_cache import cache, compile_ahead
from projects.models import Flag, FlagEnvironment, Segment, Strategy, StrategySegment
from projects.revision import read_revisions
from projects.used_by import queries
from tests.support.cast import make_project
from tests.support.examples import first_every_day
from tests.support.playground import ask, live_flag
from tests.support.random_changes import RandomChanges

COUNTRY = {"contextName": "country", "operator": "IN", "values": ["NO"]}


@pytest.fixture
def filled(shop):
    make_project("docs")
    north = Segment.objects.create(name="north", constraints=[COUNTRY])
    for name, project in (("one", "shop"), ("two", "shop"), ("three", "docs")):
        live_flag(name, project)
    for name in ("four", "five"):
        strategy = live_flag(name, "docs").strategies.get()
        StrategySegment.objects.create(strategy=strategy, segment=north)
    cache.clear()
    return north


@pytest.fixture
def read(monkeypatch):
    """The projects that were read, one list for each time, or the flags if only these were."""
    asked = []
    original = playground.snapshot_cache.read_definition_batches

    def noted(projects, environment, flags=None):
        asked.append(list(projects) if flags is None else set(flags))
        return original(projects, environment, flags)

    monkeypatch.setattr(playground.snapshot_cache, "read_definition_batches", noted)
    return asked


def switch(name):
    FlagEnvironment.objects.filter(flag__name=name).update(enabled=False)


def test_only_what_changed_is_read(api, filled, read):
    ask(api)
    switch("one")
    ask(api)
    switch("three")
    switch("two")
    ask(api)
    assert [each for each in read if each] == [["default", "docs", "shop"], {"one"}, {"two", "three"}]


def test_a_new_project_takes_over_the_others(api, filled, read):
    ask(api)
    make_project("new")
    live_flag("six", "new")
    assert [flag["name"] for flag in ask(api).json()["features"]] == [
        "five",
        "four",
        "one",
        "six",
        "three",
        "two",
    ]
    assert read[1:] == [["new"]]


def test_a_small_part_does_not_carry_the_whole(api, filled, read):
    ask(api)
    ask(api, projects=["default"])
    assert read == [["default", "docs", "shop"], ["default"]]


def test_a_project_is_taken_from_the_whole(api, filled, read):
    whole = ask(api).content
    size = cache.nbytes
    ask(api, projects=["docs"])
    assert read[1:] == [[]]
    assert size < cache.nbytes < 1.3 * size  # they share most of its memory
    cache.clear()
    ask(api, projects=["docs"])
    assert ask(api).content == whole


def test_batches_make_the_same_snapshot(api, filled, monkeypatch):
    whole = ask(api).content
    first = cache.nbytes
    for size in (1, 2, 3):
        cache.clear()
        monkeypatch.setattr(projects.definitions, "BATCH", size)
        assert ask(api).content == whole
        assert cache.nbytes == first


def test_of_two_as_good_the_smaller_is_taken(api, filled):
    ask(api)
    ask(api, projects=["shop"])
    switch("one")
    [(environment, _), *_] = [key for key, _ in cache.entries()]
    now = read_revisions(["shop"])
    best, revisions = cache.find_nearest((environment, tuple(now.items())))
    assert {flag.name for flag in best.snapshot.flags} == {"one", "two"}
    assert revisions["shop"] < now["shop"]


def test_a_project_is_not_taken_from_a_whole_of_many_segments(api, filled, read, monkeypatch):
    monkeypatch.setattr(playground.snapshot_cache, "SPARE_ENTRIES", 1)
    ask(api)
    ask(api, projects=["shop"])
    assert read[1:] == [["shop"]]


CHANGES = {
    "a switch": lambda north: switch("one"),
    "a segment": lambda north: Segment.objects.update(constraints=[COUNTRY | {"inverted": True}]),
    "a segment taken off": lambda north: StrategySegment.objects.filter(strategy__flag__name="four").delete(),
    "a strategy": lambda north: Strategy.objects.filter(flag__name="two").update(disabled=True),
    "an archived flag": lambda north: archive_one("three"),
    "a new flag": lambda north: live_flag("another"),
    "another name": lambda north: Segment.objects.update(name="south"),
}


def archive_one(name):
    FlagEnvironment.objects.filter(flag__name=name).update(enabled=False)
    Flag.objects.filter(name=name).update(archived_at=timezone.now())


def test_after_every_change_it_answers_as_a_fresh_worker(api, filled):
    ask(api)
    for what, change in CHANGES.items():
        change(filled)
        taken_over = ask(api).content
        cache.clear()
        fresh = ask(api).content
        assert taken_over == fresh, what


@pytest.mark.parametrize("seed", first_every_day(range(4)))
def test_after_random_changes_it_answers_as_a_fresh_worker(api, filled, seed):
    changes = RandomChanges(seed)
    for _ in range(25):
        changes.step()
        taken_over = ask(api).content
        kept = cache.entries()
        cache.clear()
        assert ask(api).content == taken_over
        cache.clear()
        for key, snapshot in kept:
            cache.put(key, snapshot, limit=100_000_000)


def test_compiled_ahead(api, filled, read):
    compile_ahead("production", pause_between)
    assert read == [["default", "docs", "shop"]]
    whole = ask(api).content
    assert len(read) == 1
    compile_ahead("production", pause_between)  # it is there
    assert len(read) == 1
    cache.clear()
    assert ask(api).content == whole


@pytest.mark.parametrize(
    ("least", "limit", "compiled", "counted"),
    [(1, 100_000_000, 1, 3), (1, 1_000, 0, 3), (100, 100_000_000, 0, 0)],
    ids=["many flags", "more than fit", "few flags"],
)
def test_what_a_worker_prepares(filled, read, monkeypatch, settings, least, limit, compiled, counted):
    queries.cache.clear()
    settings.SNAPSHOT_CACHE_BYTES = limit
    monkeypatch.setattr(playground.compile_ahead, "MIN_COUNT", least)
    prepare()
    assert len(cache.entries()) == len(read) == compiled
    assert len(queries.cache.entries()) == counted
    queries.cache.clear()


@pytest.mark.django_db(transaction=True)
def test_who_needs_what_is_compiled_ahead_waits_without_its_pauses(api, filled, read, monkeypatch):
    monkeypatch.setattr(playground.compile_ahead, "REST", 1_000_000)
    monkeypatch.setattr(playground.compile_ahead, "STEP", 1)
    whole = ask(api).content
    cache.clear()
    read.clear()
    paused = threading.Event()

    def noted(batches, needed):
        for batch in pause_between(batches, needed):
            yield batch
            paused.set()

    def compiling():
        compile_ahead("production", noted)
        connection.close()

    thread = threading.Thread(target=compiling, daemon=True)
    thread.start()
    assert paused.wait(60)
    assert ask(api, projects=["docs"]).status_code == 200  # compiles a small part by itself
    assert thread.is_alive()
    assert ask(api).content == whole
    thread.join(60)
    assert not thread.is_alive()
    assert read == [["default", "docs", "shop"], ["docs"]]

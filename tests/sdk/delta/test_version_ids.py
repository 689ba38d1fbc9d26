"""Version ids: which of two states of a scope is the later one, whoever read it and when they were committed."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection, connections, transaction

from projects.models import Flag, SdkVersion
from projects.revision import read_revisions
from sdk.delta.states import Outdated, Scope, get_version_id, read_latest_id, states
from tests.sdk.delta.client import DeltaSdk
from tests.support.cast import make_project
from tests.support.flags import make_flag, switch_on

SCOPE = Scope("development", None).key


@pytest.mark.django_db
def test_the_later_state_wins(shop) -> None:
    now = read_revisions()
    first = get_version_id(SCOPE, now)
    assert get_version_id(SCOPE, now) == first == read_latest_id(SCOPE)
    later = now | {"shop": now["shop"] + 5}
    assert get_version_id(SCOPE, later) > first
    with pytest.raises(Outdated):
        get_version_id(SCOPE, now)
    assert get_version_id(SCOPE, later) == read_latest_id(SCOPE)


@pytest.mark.django_db
def test_projects_that_only_one_state_has(shop) -> None:
    """They were created or deleted in between, and what exists now tells which."""
    before = read_revisions()
    make_project("docs")
    after = read_revisions()
    version = get_version_id(SCOPE, after)
    with pytest.raises(Outdated):
        get_version_id(SCOPE, before)  # read before the project was created
    shop.delete()
    deleted = read_revisions()
    assert get_version_id(SCOPE, deleted) > version
    with pytest.raises(Outdated):
        get_version_id(SCOPE, after)


@pytest.mark.django_db
def test_no_two_scopes_have_an_id_in_common(shop) -> None:
    scopes = [Scope("development", projects).key for projects in (None, (), ("shop",), ("default", "shop"))]
    ids = [get_version_id(scope, {"shop": revision}) for revision in range(5) for scope in scopes]
    assert len(set(ids)) == len(ids) == 20
    assert SdkVersion.objects.count() == 4


def in_thread(work: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("same_project", [True, False])
def test_no_change_is_missed_when_commits_are_out_of_order(same_project: bool) -> None:
    """The change with the lower revision is committed last; an SDK asks before, between and after."""
    make_project("shop"), make_project("docs")
    early, late = make_flag("early", "shop"), make_flag("late", "docs")
    sdks = [DeltaSdk(), DeltaSdk()]
    for sdk in sdks:
        sdk.poll()
    changed, committed = threading.Event(), threading.Event()

    def change_early() -> None:
        with transaction.atomic():
            switch_on(early)
            changed.set()
            assert committed.wait(60)

    thread = in_thread(change_early)
    assert changed.wait(60)
    if not same_project:
        switch_on(late)
        assert sdks[0].poll() == [("feature-updated", "late")]
    committed.set()
    thread.join()
    assert sdks[0].poll() == [("feature-updated", "early")]
    sdks[1].poll()
    assert all(sdk.flags["early"]["enabled"] and sdk.is_current() for sdk in sdks)


@pytest.mark.django_db(transaction=True)
def test_workers_that_read_at_once_agree() -> None:
    """Each starts from nothing, as a worker of its own would: the same id always means the same flags."""
    make_project("shop")
    flags = [make_flag(name, "shop") for name in "abc"]
    seen: list[tuple[int, tuple[bool, ...]]] = []
    rounds = [threading.Event() for _ in range(8)]
    # All meet after each round, so that every round is read by each worker however slow the machine.
    meeting = threading.Barrier(4, timeout=60)

    def worker() -> None:
        mine = type(states)()
        state = mine.get(Scope("development", ("shop",)))
        for written in rounds:
            done = False
            while not done:
                done = written.is_set()
                version = state.bring_up_to_date(None, using="default")
                content = state._history.content
                seen.append((version, tuple(b'"enabled":true' in text for _, text in content.flags)))
            meeting.wait()

    threads = [in_thread(worker) for _ in range(3)]
    for written in rounds:
        for flag in flags:
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE projects_flagenvironment SET enabled = NOT enabled WHERE flag_id = %s", [flag.pk]
                )
        written.set()
        meeting.wait()
    for thread in threads:
        thread.join()
    meaning: dict[int, tuple[bool, ...]] = {}
    for version, on in seen:
        assert meaning.setdefault(version, on) == on
    assert len(meaning) >= len(rounds)
    assert Flag.objects.count() == 3

"""A flag becomes what one of its versions was."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import Conflict, EditConflict, NoAccess, NotFound, ValidationError
from groups.access import Caller
from projects.environments.actions import delete_environment
from projects.flags.actions import NewFlag, create_flag, set_stale, update_flag
from projects.flags.archive import actions as archive
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.history.definitions_at import read_present_version
from projects.models import Environment, Flag, Project, Strategy
from projects.projects.environments import add_environment, remove_environment
from projects.reverts.actions import revert_flag
from projects.reverts.environment_plan import Choice, find_target
from projects.segments.actions import create_segment, delete_segment
from projects.strategies import actions as strategies
from tests.projects.history.checked import check_history
from tests.support.cast import make_project
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race
from tests.support.random_changes import RandomChanges

pytestmark = pytest.mark.django_db
SYSTEM = Caller.system()
PLACE = ("shop", "cart", "production")


@pytest.fixture
def cart(shop: Project) -> Flag:
    return create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)


def version() -> datetime:
    """The flag's version now."""
    return AuditEvent.objects.filter(feature="cart").latest("id").created_at


def add(**given: Any) -> str:
    given = {"name": "flexibleRollout", "parameters": {"rollout": "50"}} | given
    return str(strategies.add_strategy(*PLACE, given, caller=SYSTEM)["id"])


def revert(target: datetime, **given: Any) -> list[str]:
    parts = revert_flag("shop", "cart", target, **({"caller": SYSTEM} | given))
    return [part.key for part in parts]


def now() -> dict[str, Any]:
    return dict(read_present_version(Flag.objects.get(name="cart")))


def test_everything_becomes_what_it_was(cart: Flag) -> None:
    first = add(title="First", sortOrder=0)
    second = add(name="default", sortOrder=1)
    environments.enable_flag(*PLACE, caller=SYSTEM)
    create_flag("shop", NewFlag(name="parent"), caller=SYSTEM)
    dependencies.add_dependency("shop", "cart", {"feature": "parent"}, caller=SYSTEM)
    was, target = now(), version()

    strategies.remove_strategy(*PLACE, first, caller=SYSTEM)
    strategies.update_strategy(*PLACE, second, {"disabled": True}, caller=SYSTEM)  # turns it off
    strategies.add_strategy("shop", "cart", "development", {"name": "default"}, caller=SYSTEM)
    variants = [{"name": "red", "weightType": "variable", "weight": 1}]
    environments.set_variants("shop", "cart", "development", variants, caller=SYSTEM)
    dependencies.clear_dependencies("shop", "cart", caller=SYSTEM)
    update_flag("shop", "cart", {"description": "New", "impression_data": True}, caller=SYSTEM)
    set_stale({"shop": ["cart"]}, True, caller=SYSTEM)
    later, newer = now(), version()
    events = AuditEvent.objects.count()

    changed = ["environment:development", "environment:production", "dependencies", "details"]
    assert revert(target) == changed
    assert now() == was
    assert {str(row.pk) for row in Strategy.objects.filter(environment="production")} == {first, second}
    [event] = AuditEvent.objects.order_by("id")[events:]
    assert (event.type, event.before, event.after) == ("feature-reverted", later, was)
    assert event.subject == f"{target.day} {target:%b %Y, %H:%M:%S} UTC"
    assert revert(newer) == changed
    assert now() == later
    assert revert(newer) == []
    assert AuditEvent.objects.count() == events + 2


def test_only_what_is_chosen(cart: Flag) -> None:
    target = version()
    environments.enable_flag(*PLACE, caller=SYSTEM)
    environments.enable_flag("shop", "cart", "development", caller=SYSTEM)
    update_flag("shop", "cart", {"description": "New"}, caller=SYSTEM)

    only = Choice(environments=frozenset(["development"]), details=False)
    assert revert(target, choice=only) == ["environment:development"]
    assert revert(target, choice=Choice(environments=frozenset())) == ["details"]
    assert revert(target) == ["environment:production"]


def test_nothing_is_written_without_a_permission_in_one_environment(cart: Flag, callers: Any) -> None:
    target = version()
    for environment in ("production", "development"):
        strategies.add_strategy("shop", "cart", environment, {"name": "default"}, caller=SYSTEM)
    before = now()
    with pytest.raises(NoAccess) as refused:
        revert(target, caller=callers("reader"))
    assert "in Shop (development)" in refused.value.message
    assert "in Shop (production)" in refused.value.message
    assert refused.value.extra["permissions"] == ["DELETE_FEATURE_STRATEGY"]
    assert now() == before
    revert(target, caller=callers("member"))


def test_what_has_been_deleted_since_is_named(cart: Flag) -> None:
    segment = create_segment({"name": "beta", "constraints": []}, caller=SYSTEM).pk
    create_flag("shop", NewFlag(name="parent"), caller=SYSTEM)
    dependencies.add_dependency("shop", "cart", {"feature": "parent"}, caller=SYSTEM)
    strategy = add(segments=[segment])
    Environment.objects.create(name="extra", type="test")
    add_environment("shop", "extra", caller=SYSTEM)
    strategies.add_strategy("shop", "cart", "extra", {"name": "default"}, caller=SYSTEM)
    update_flag("shop", "cart", {"description": "Old"}, caller=SYSTEM)
    target = version()
    update_flag("shop", "cart", {"description": "New"}, caller=SYSTEM)
    strategies.remove_strategy(*PLACE, strategy, caller=SYSTEM)
    delete_segment(segment, caller=SYSTEM)
    dependencies.clear_dependencies("shop", "cart", caller=SYSTEM)
    archive.archive_flags("shop", ["parent"], caller=SYSTEM)
    remove_environment("shop", "extra", caller=SYSTEM)
    assert revert(target, choice=Choice(frozenset(), dependencies=False, details=False)) == []
    delete_environment("extra", caller=SYSTEM)
    before = now()

    with pytest.raises(Conflict) as refused:
        revert(target)
    assert {problem.path: problem.message for problem in refused.value.details} == {
        "environments.extra": "environment extra has been deleted",
        "environments.production.strategies[0].segments[0]": "segment beta has been deleted",
        "dependencies[0]": "parent is archived; a parent must be active",
    }
    assert "Leave out extra and production and dependencies" in refused.value.message
    assert now() == before
    assert revert(target, choice=Choice(frozenset(), dependencies=False)) == ["details"]


def test_an_environment_that_the_project_did_not_use_then_stays(cart: Flag) -> None:
    remove_environment("shop", "production", caller=SYSTEM)
    update_flag("shop", "cart", {"description": "Old"}, caller=SYSTEM)
    target = version()
    add_environment("shop", "production", caller=SYSTEM)
    environments.enable_flag(*PLACE, caller=SYSTEM)
    update_flag("shop", "cart", {"description": "New"}, caller=SYSTEM)
    assert revert(target) == ["details"]


def production(version: dict[str, Any]) -> list[dict[str, Any]]:
    [strategies] = [place["strategies"] for place in version["environments"] if place["name"] == "production"]
    return strategies


def test_somebody_was_faster(cart: Flag) -> None:
    target = version()
    environments.enable_flag(*PLACE, caller=SYSTEM)
    seen = frozenset([hash_document(now())])
    set_stale({"shop": ["cart"]}, True, caller=SYSTEM)
    with pytest.raises(EditConflict):
        revert(target, expected=seen)
    revert(target, expected=frozenset([hash_document(now())]))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_two_at_once_one_is_told(transactional_db: None, stop: Any) -> None:
    make_project("shop")
    create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)
    target = version()
    environments.enable_flag(*PLACE, caller=SYSTEM)
    seen = frozenset([hash_document(now())])

    def attempt() -> bool:
        try:
            return bool(revert(target, expected=seen))
        except EditConflict:
            return False

    assert sorted(race(attempt, attempt, stop=stop)) == [False, True]
    assert not production(now())


def test_versions_that_there_are_not(cart: Flag, callers: Any) -> None:
    other = create_flag("shop", NewFlag(name="other"), caller=SYSTEM)
    event = AuditEvent.objects.get(feature=other.name).pk
    with pytest.raises(ValidationError, match=f"cart has no event {event}"):
        find_target(SYSTEM, cart, event=event)
    with pytest.raises(NotFound, match="There was no flag cart"):
        revert(cart.created_at - timedelta(days=1))
    archive.archive_flags("shop", ["cart"], caller=SYSTEM)
    archived, then = version(), timezone.now()
    with pytest.raises(NotFound, match="revive it first"):
        revert(archived)
    archive.revive_flags("shop", ["cart"], caller=SYSTEM)
    for target in (archived, then):
        with pytest.raises(Conflict, match="was archived"):
            revert(target)


def test_a_flag_created_again_has_no_earlier_versions(cart: Flag) -> None:
    target = version()
    archive.archive_flags("shop", ["cart"], caller=SYSTEM)
    archive.delete_flags("shop", ["cart"], caller=SYSTEM)
    create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)
    with pytest.raises(NotFound, match="There was no flag"):
        revert(target)


class Reverts(RandomChanges):
    """Random changes, and reverts to random versions of what was stored after each of them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.stored: list[tuple[int, datetime, dict[str, Any], set[str]]] = []
        self.known: set[tuple[int, int]] = set()

    def step(self) -> str | None:
        done = super().step()
        last = AuditEvent.objects.filter(feature=OuterRef("name")).order_by("-id")
        flags = Flag.objects.active()
        events = dict(flags.values_list("pk", Subquery(last.values("pk")[:1])))
        for flag in flags:
            event = events[flag.pk]
            if (flag.pk, event) not in self.known:
                self.known.add((flag.pk, event))
                self.stored.append((flag.pk, timezone.now(), read_present_version(flag), used(flag)))
        return done

    def do_revert(self) -> None:
        flag = self.active()
        _, target, then, places = self.random.choice([entry for entry in self.stored if entry[0] == flag.pk])
        revert_flag(flag.project_id, flag.name, target, caller=SYSTEM)
        flag.refresh_from_db()
        places &= used(flag)
        assert restored(read_present_version(flag), places) == restored(then, places)

    do_revert_again = do_revert
    do_revert_once_more = do_revert


def used(flag: Flag) -> set[str]:
    """The environments of the flag's project."""
    return set(flag.project.environments.values_list("name", flat=True))


def restored(flag: dict[str, Any], environments: set[str]) -> dict[str, Any]:
    """What a revert restores; ids that an import has replaced are not known."""
    places = {
        place["name"]: {**place, "strategies": [{**strategy, "id": None} for strategy in place["strategies"]]}
        for place in flag["environments"]
        if place["name"] in environments and (place["enabled"] or place["variants"] or place["strategies"])
    }
    return {**flag, "environments": places, "project": None, "archivedAt": None}


def check_reverts(seed: int, steps: int) -> None:
    done = check_history(seed, steps, Reverts).done
    assert any(name.startswith("do_revert") for name in done)


def test_reverts_among_random_changes(shop: Project) -> None:
    check_reverts(1, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 5))
def test_reverts_among_many_random_changes(shop: Project, seed: int) -> None:
    check_reverts(seed, 150)

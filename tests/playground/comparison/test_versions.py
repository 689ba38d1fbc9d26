"""Whom each version of a flag changed."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from playground.comparison import versions
from playground.comparison.compare import Change
from playground.comparison.versions import USERS, Version, find_version_changes
from projects.definitions import Definitions, read_definitions
from projects.flags.actions import NewFlag, create_flag, update_flag
from projects.flags.archive import actions as archive
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.models import Flag, Project, UsersChanged
from projects.segments.actions import create_segment, update_segment
from projects.strategies import actions as strategies
from tests.support.cast import make_project
from tests.support.page_text import page_text
from tests.support.random_changes import PROJECTS, RandomChanges

pytestmark = pytest.mark.django_db
SYSTEM = Caller.system()
PLACE = ("shop", "cart", "production")
ENVIRONMENTS = ["development", "production"]
FLAG = "/projects/shop/features/cart/"


@pytest.fixture
def cart(shop: Project) -> Flag:
    return create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)


def since(last: int) -> Version:
    """The flag's events after one of them as a version."""
    events = AuditEvent.objects.filter(feature="cart", pk__gt=last).order_by("pk")
    return Version.of_events([event.created_at for event in events])


def last_event() -> int:
    return AuditEvent.objects.latest("pk").pk


def changed(version: Version) -> dict[str, dict[Change, int]]:
    flag = Flag.objects.get(name="cart")
    found = find_version_changes(flag, [version])[version]
    return {place.environment: dict(place.counts or {}) for place in found.places}


def test_each_version_as_everything_was_then(cart: Flag) -> None:
    made = []

    def step(action: Any, *given: Any, **values: Any) -> Any:
        last = last_event()
        result = action(*given, **values, caller=SYSTEM)
        made.append(since(last))
        return result

    segment = create_segment({"name": "beta", "constraints": []}, caller=SYSTEM).pk
    rollout = {"name": "flexibleRollout", "segments": [segment]}
    strategy = step(strategies.add_strategy, *PLACE, rollout | {"parameters": {"rollout": "0"}})
    step(environments.enable_flag, *PLACE)
    half = {"parameters": {"rollout": "50", "stickiness": "userId", "groupId": "cart"}}
    step(strategies.update_strategy, *PLACE, strategy["id"], half)
    step(update_flag, "shop", "cart", {"description": "New"})
    step(strategies.update_strategy, *PLACE, strategy["id"], {"disabled": True})  # and turns it off
    create_flag("shop", NewFlag(name="parent"), caller=SYSTEM)
    step(environments.enable_flag, *PLACE, activate_disabled=True)
    step(dependencies.add_dependency, "shop", "cart", {"feature": "parent"})
    step(dependencies.clear_dependencies, "shop", "cart")
    nobody = [{"contextName": "userId", "operator": "IN", "values": ["nobody"]}]
    update_segment(segment, {"constraints": nobody}, caller=SYSTEM)
    archive.archive_flags("shop", ["parent"], caller=SYSTEM)
    archive.delete_flags("shop", ["parent"], caller=SYSTEM)

    found = [changed(version) for version in made]
    [(_, number)] = found[2]["production"].items()
    assert USERS * 0.45 < number < USERS * 0.55
    on, off = {"production": {Change.OFF_TO_ON: number}}, {"production": {Change.ON_TO_OFF: number}}
    assert found == [{}, {"production": {}}, on, {}, off, on, off, on]
    together = find_version_changes(Flag.objects.get(), made)
    assert [dict(together[version].places[0].counts or {}) for version in made[4:]] == [
        each["production"] for each in found[4:]
    ]


def test_a_version_that_is_known_is_not_computed_again(cart: Flag, django_assert_num_queries: Any) -> None:
    last = last_event()
    environments.enable_flag(*PLACE, caller=SYSTEM)
    first = changed(since(last))
    assert first == {"production": {Change.OFF_TO_ON: USERS}}
    version = since(last)
    with django_assert_num_queries(1):
        assert find_version_changes(cart, [version])[version].places[0].changed == USERS


def test_recent_changes_are_counted_in_the_background(api: Any, browse: Any, cart: Flag) -> None:
    half = {
        "name": "flexibleRollout",
        "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "cart"},
    }
    strategies.add_strategy(*PLACE, half, caller=SYSTEM)
    environments.enable_flag(*PLACE, caller=SYSTEM)
    on = last_event()
    update_flag("shop", "cart", {"description": "New"}, caller=SYSTEM)

    def read_events() -> dict[int, Any]:
        events = api["viewer"].get("/api/admin/events/cart").json()["events"]
        return {event["id"]: event.get("whoChanges") for event in events}

    assert set(read_events().values()) == {None}
    versions.count_recent_changes()
    found = read_events()
    [place] = found.pop(on)
    assert 4_500 < place["changed"] < 5_500
    expected = {"environment": "production", "users": 10_000, "changed": place["changed"], "unmeasured": []}
    assert place == expected | {"changes": {"offToOn": place["changed"]}}
    assert [*found.values()] == [[], [], []]
    sentence = f"production: {place['changed']:,} of 10,000 users"
    assert sentence in page_text(browse("viewer").get("/activity/"))
    part = browse("reader").get(f"{FLAG}versions?event={on}")
    assert f"{place['changed']:,} of 10,000 generated users off → on" in page_text(part)
    rows = UsersChanged.objects.count()
    versions.count_recent_changes()
    assert UsersChanged.objects.count() == rows


def test_too_many_values(cart: Flag, monkeypatch: pytest.MonkeyPatch) -> None:
    last = last_event()
    constraints = [{"contextName": "userId", "operator": "IN", "values": ["1", "2", "3"]}]
    strategies.add_strategy(*PLACE, {"name": "default", "constraints": constraints}, caller=SYSTEM)
    environments.enable_flag(*PLACE, caller=SYSTEM)
    monkeypatch.setattr(versions, "MAX_VALUES", 2)
    [place] = find_version_changes(cart, [version := since(last)])[version].places
    assert place.counts is None


def test_the_history_loads_whom_its_versions_changed(browse: Any, cart: Flag) -> None:
    environments.enable_flag(*PLACE, caller=SYSTEM)
    turned_on = last_event()
    environments.disable_flag(*PLACE, caller=SYSTEM)
    strategies.add_strategy(*PLACE, {"name": "default"}, caller=SYSTEM)
    browser = browse("reader")
    page = browser.get(FLAG, {"version": turned_on}).text
    assert f'id="who-{turned_on}"' in page
    assert "Who was affected" in page
    assert f"{FLAG}versions?event={last_event()}&amp;event=" in page
    part = browser.get(f"{FLAG}versions?event={turned_on}&event={last_event()}&event=1")
    assert part.text.count("hx-swap-oob") == 2
    assert "production: 10,000 of 10,000 generated users off → on" in page_text(part)
    assert browse("outsider").get(f"{FLAG}versions?event={turned_on}").status_code == 404
    assert browser.get(f"{FLAG}versions?event=x").status_code == 400


def test_events_of_one_request_are_one_version(api: Any, browse: Any, cart: Flag) -> None:
    url = "/api/admin/projects/shop/features/cart/environments/production/on"
    assert api["member"].post(url).status_code == 200  # adds a strategy, and turns it on
    add, _ = AuditEvent.objects.filter(feature="cart").order_by("-pk")[:2]
    part = browse("reader").get(f"{FLAG}versions?event={last_event()}")
    assert "10,000 generated users off → on" in page_text(part)
    assert add.request_id


def test_versions_among_random_changes_changed_whom_they_changed_then(shop: Project) -> None:
    make_project("docs")
    steps, made = RandomChanges(5), []
    states = {name: read_definitions(["default", *PROJECTS], name) for name in ENVIRONMENTS}
    for _ in range(70):
        last = AuditEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        before = states
        steps.step()
        states = {name: read_definitions(["default", *PROJECTS], name) for name in ENVIRONMENTS}
        events = list(AuditEvent.objects.filter(pk__gt=last).order_by("pk"))
        flag = Flag.objects.filter(name__in={event.feature for event in events if event.feature}).first()
        if flag is not None and {event.feature for event in events} == {flag.name}:
            version = Version.of_events([event.created_at for event in events])
            made.append((flag, version, before, states))
    compared = 0
    for flag, version, before, after in made:
        if not Flag.objects.active().filter(pk=flag.pk).exists():
            continue
        flag.refresh_from_db()
        found = find_version_changes(flag, [version])[version].places
        counts = {place.environment: dict(place.counts or {}) for place in found}
        for name in flag.project.environments.filter(name__in=ENVIRONMENTS).values_list("name", flat=True):
            then = stored_counts(flag.name, name, version, before[name], after[name])
            assert counts.get(name, {}) == then, (flag.name, name)
            compared += bool(then)
    assert compared > 3


def stored_counts(
    flag: str, environment: str, version: Version, before: Definitions, after: Definitions
) -> dict[Change, int]:
    """Counted from what was stored before and after the version."""
    names = {flag} | {
        parent["feature"]
        for state in (before, after)
        for each in state.flags
        if each["name"] == flag
        for parent in each["dependencies"]
    }
    states = [
        Definitions.of((each for each in state.flags if each["name"] in names), state.segments)
        for state in (before, after)
    ]
    return dict(versions._count_changes(flag, environment, states, version.at).counts or {})

"""States of the past: the same as the present was, and only for those who may read them."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from groups.access import Caller
from groups.models import Grant
from groups.permissions import BuiltIn
from playground.comparison import request
from playground.comparison.compare import Comparison
from playground.comparison.contexts import generate_contexts
from playground.comparison.past import Moment, PastState
from playground.comparison.states import compile_states, read_states
from playground.comparison.table import ContextTable
from playground.models import SavedContext
from playground.snapshot_cache import cache, load_snapshot
from projects.deletion.execute import delete_project
from projects.environments.actions import create_environment, delete_environment
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive import actions as archive
from projects.flags.copies import move
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.models import Flag, OutsideChange, Strategy, VersionsSince
from projects.models.versions import BEGINNING
from projects.projects.actions import create_project
from projects.projects.environments import add_environment, remove_environment
from projects.revision import read_revisions
from projects.segments.actions import create_segment, update_segment
from projects.strategies import actions as strategies
from tests.support.cast import make_project
from tests.support.random_changes import RandomChanges
from tests.support.records import refused

pytestmark = pytest.mark.django_db
URL = "/api/admin/playground/compare"
WHO = Caller.system()
PRODUCTION = {"environment": "production"}


def flag(name: str, project: str = "shop", environment: str = "production") -> None:
    create_flag(project, NewFlag(name=name), caller=WHO)
    environments.enable_flag(project, name, environment, caller=WHO)


def ask(api: Any, at: datetime, who: str = "viewer", place: Any = PRODUCTION, **members: Any) -> Any:
    body = {
        "from": {**place, "at": at.isoformat()},
        "to": PRODUCTION,
        "contexts": {"explicit": [{"userId": "1"}]},
    }
    return api[who].post(URL, body | members)


def problems(response: Any) -> list[tuple[str, str]]:
    details = refused(response, 400, "ValidationError")["details"]
    return [(each["path"], each["message"]) for each in details]


def changes(response: Any) -> dict[str, str]:
    assert response.status_code == 200, response.content
    return {each["flag"]: each["change"] for each in response.json()["examples"]}


@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("later", "present"), [(20, True), (20, False), (3, False)])
def test_results_of_the_past_are_those_of_then(shop: Any, seed: int, later: int, present: bool) -> None:
    """Compiled from the present, or on its own, the past gives everybody what it gave then."""
    make_project("docs")
    steps = RandomChanges(seed)
    for _ in range(30):
        steps.step()
    then, moment = load_snapshot(["shop", "docs"], "production").snapshot, timezone.now()
    for _ in range(later):
        steps.step()
    current = read_revisions(["shop", "docs"])
    if present:
        load_snapshot(["shop", "docs"], "production")
    else:
        cache.clear()
    state = PastState("production", Moment(moment, frozenset(["shop", "docs"])))
    [past] = compile_states(current, [state])
    is_compiled = bool(cache.entries())
    read = read_states(current, [state], then.names)
    comparison = Comparison(then, past, ContextTable(generate_contexts(read, now=moment, limit=200)))
    assert past.names == then.names
    assert is_compiled or not present
    for name in then.names:
        assert not comparison.flag(name).changed
        assert all(old == new for old, new in comparison.flag(name).pairs)


def test_what_changed_since(api: Any, shop: Any) -> None:
    flag("stays")
    flag("goes")
    segment = create_segment({"name": "vip", "constraints": []}, caller=WHO)
    flag("by-segment")
    added = {"name": "default", "segments": [segment.pk]}
    [default] = Strategy.objects.filter(flag__name="by-segment")
    strategies.add_strategy("shop", "by-segment", "production", added, caller=WHO)
    strategies.remove_strategy("shop", "by-segment", "production", str(default.pk), caller=WHO)
    moment = timezone.now()
    constraint = {"contextName": "userId", "operator": "IN", "values": ["7"]}
    update_segment(segment.pk, {"constraints": [constraint]}, caller=WHO)
    archive.archive_flags("shop", ["goes"], caller=WHO)
    archive.delete_flags("shop", ["goes"], caller=WHO)
    flag("new")
    found = ask(api, moment)
    assert changes(found) == {"by-segment": "onToOff", "goes": "onToOff", "new": "offToOn"}
    assert "notes" not in found.json()
    assert changes(ask(api, timezone.now())) == {}
    assert changes(ask(api, moment, flag="goes")) == {"goes": "onToOff"}
    assert changes(ask(api, moment, contexts={"generated": True}))["by-segment"] == "onToOff"


def test_an_environment_that_has_been_deleted(api: Any, shop: Any) -> None:
    create_environment({"name": "canary", "type": "test"}, caller=WHO)
    add_environment("shop", "canary", caller=WHO)
    flag("f", environment="canary")
    environments.disable_flag("shop", "f", "canary", caller=WHO)
    environments.enable_flag("shop", "f", "canary", caller=WHO)
    moment = timezone.now()
    environments.disable_flag("shop", "f", "canary", caller=WHO)
    remove_environment("shop", "canary", caller=WHO)
    delete_environment("canary", caller=WHO)
    assert changes(ask(api, moment, place={"environment": "canary"})) == {"f": "onToOff"}
    refused(ask(api, timezone.now(), place={"environment": "canary"}), 400, "ValidationError")


def test_a_deleted_project_is_for_admins(api: Any, shop: Any) -> None:
    create_project({"id": "gone", "name": "Gone"}, caller=WHO)
    flag("secret", "gone")
    moment = timezone.now()
    archive.archive_flags("gone", ["secret"], caller=WHO)
    delete_project("gone", caller=WHO)
    assert changes(ask(api, moment, "admin")) == {"secret": "onToOff"}
    assert changes(ask(api, moment, "admin", projects=["gone"])) == {"secret": "onToOff"}
    assert changes(ask(api, moment)) == {}
    refused(ask(api, moment, projects=["gone"]), 400, "ValidationError")
    create_project({"id": "gone", "name": "Another"}, caller=WHO)
    assert changes(ask(api, moment, projects=["gone"])) == {}
    assert changes(ask(api, moment, "admin", projects=["gone"])) == {"secret": "onToOff"}


def test_a_flag_that_has_moved_belongs_where_it_was(api: Any, people: Any) -> None:
    make_project("docs")
    flag("leaves")
    flag("comes", "docs")
    moment = timezone.now()
    move.move_flag("shop", "leaves", "docs", caller=WHO)
    move.move_flag("docs", "comes", "shop", caller=WHO)
    environments.disable_flag("docs", "leaves", "production", caller=WHO)
    # "reader" may read shop only.
    assert changes(ask(api, moment, "reader")) == {"comes": "offToOn", "leaves": "onToOff"}
    assert not Grant.objects.filter(user=people["reader"], project="docs").exists()
    assert changes(ask(api, moment, "outsider")) == {}
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="docs", user=people["outsider"])
    assert changes(ask(api, moment, "outsider")) == {"comes": "onToOff"}


def test_changes_that_left_no_event_are_told(api: Any, shop: Any) -> None:
    flag("f")
    moment = timezone.now()
    OutsideChange.objects.create(project_id="shop", noticed_at=moment + timedelta(seconds=1))
    assert "notes" not in ask(api, moment).json()  # versions have them
    VersionsSince.objects.create(since=BEGINNING, kept_since=timezone.now() + timedelta(hours=1))
    [note] = ask(api, moment).json()["notes"]
    assert note.startswith("shop was changed outside flagadmin on ")
    OutsideChange.objects.create(project_id="shop", noticed_at=moment + timedelta(seconds=3))
    [note] = ask(api, moment).json()["notes"]
    assert note.startswith("shop was changed outside flagadmin between ")
    assert "notes" not in ask(api, moment, who="outsider").json()


def test_refused(api: Any, shop: Any) -> None:
    flag("f")
    both = {"environment": "production", "draft": {"flag": "f", "enabled": False}}
    assert problems(ask(api, timezone.now(), place=both)) == [
        ("from.draft", "cannot be saved in the past: leave out at")
    ]
    assert Flag.objects.count() == 1


def test_one_flag_is_compared_with_the_past_as_among_all(api: Any, shop: Any, monkeypatch: Any) -> None:
    """Read alone or with all others: counts, examples, and the expectations of flags that depend on it."""
    for name in ("f", "child", "other"):
        flag(name)
    dependencies.add_dependency("shop", "child", {"feature": "f"}, caller=WHO)
    expectation = {"flag": "child", "environment": "production", "enabled": True, "variant": None}
    SavedContext.objects.create(name="Ada", context={"userId": "1"}, expectations=[expectation])
    then = timezone.now()
    environments.disable_flag("shop", "f", "production", caller=WHO)
    environments.disable_flag("shop", "other", "production", caller=WHO)
    alone = ask(api, then, flag="f").json()
    monkeypatch.setattr(request, "MAX_READ_ALONE", 0)
    assert ask(api, then, flag="f").json() == alone
    assert [one["name"] for one in alone["flags"]] == ["f", "child"]
    assert [one["flag"] for one in alone["expectations"]["broken"]] == ["child"]


def test_a_present_of_which_little_is_left_is_not_compiled(shop: Any) -> None:
    for number in range(4):
        flag(f"flag-{number}")
    moment = timezone.now()
    cache.clear()

    def then() -> Any:
        current = read_revisions(["shop"])
        [past] = compile_states(current, [PastState("production", Moment(moment, frozenset(["shop"])))])
        return past

    environments.disable_flag("shop", "flag-0", "production", caller=WHO)
    before = then()
    assert cache.entries()
    cache.clear()
    for number in range(1, 4):
        environments.disable_flag("shop", f"flag-{number}", "production", caller=WHO)
    after = then()
    assert not cache.entries()
    assert before.names == after.names
    assert Comparison(before, after, ContextTable([])).list_differing() == []

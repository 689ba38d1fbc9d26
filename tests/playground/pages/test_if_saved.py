"""What "Who changes" says beside a form is what saving the form then changes; nothing is written before."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from playground.comparison import impact
from playground.comparison.compare import Change, Comparison, FlagComparison
from playground.comparison.impact import Impact
from playground.pages import flag_detail
from playground.snapshot_cache import load_snapshot
from projects.flags.environments.actions import enable_flag
from projects.models import Flag, Segment, Strategy
from tests.support.flags import add_strategy, depend, make_flag
from tests.support.page_text import page_text
from tests.support.playground import live_flag

USERS = 300
FLAG = "/projects/shop/features/f/"
NORWAY = [{"contextName": "country", "operator": "IN", "values": ["NO"]}]


def rollout(percent: str, **members: Any) -> dict[str, Any]:
    parameters = {"rollout": percent, "stickiness": "default", "groupId": "g"}
    return {"name": "flexibleRollout", "parameters": parameters} | members


def variants(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "weight": 1000 // len(names), "weightType": "variable"} for name in names]


@pytest.fixture
def flag(shop: Any) -> Flag:
    live_flag("parent", strategies=[rollout("50")])
    found = live_flag(
        "f", strategies=[rollout("30", constraints=NORWAY), rollout("20")], variants=variants("a", "b")
    )
    vip = [{"contextName": "userId", "operator": "STR_ENDS_WITH", "values": ["7"]}]
    segment = Segment.objects.create(name="vip", constraints=vip)
    add_strategy(found, "production", segments=(segment,), sort_order=5)
    return found


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Impact]:
    """What the page computed."""
    found: list[Impact] = []

    def impacts(*args: Any, **options: Any) -> list[Impact]:
        made = impact.measure_impacts(*args, **options)
        found.extend(made)
        return made

    monkeypatch.setattr(impact, "SAMPLES", (USERS,))
    monkeypatch.setattr(flag_detail, "measure_impacts", impacts)
    return found


def strategy_form(percent: str, *values: str) -> dict[str, Any]:
    """What a browser sends: a rollout for users of these countries."""
    sent = {"confirmed": "yes", "name": "flexibleRollout", "p-rollout": percent, "p-stickiness": "default"}
    condition = {"c": "0", "c-0-field": "country", "c-0-operator": "IN", "c-0-values": "\n".join(values)}
    return sent | {"p-groupId": "g", "switch": "enabled", "enabled": "on"} | (condition if values else {})


def edit_url() -> str:
    first = Strategy.objects.filter(flag__name="f").order_by("sort_order").first()
    assert first is not None
    return f"{FLAG}strategies/edit?environmentId=production&strategyId={first.pk}"


def test_it_says_what_generated_users_do_not_tell(browse: Any, flag: Flag) -> None:
    pattern = {"c": "0", "c-0-field": "userId", "c-0-operator": "STR_STARTS_WITH", "c-0-values": "acme-"}
    sent, htmx = strategy_form("30") | pattern, {"HX-Request": "true"}
    answer = browse("owner").post(f"/if-saved{edit_url()}", sent, headers=htmx)
    told = "Not measured: f has the condition userId starting with acme-, about which generated users tell nothing."
    assert told in page_text(answer)


def segment_url() -> str:
    return f"/segments/{Segment.objects.get().pk}/"


VARIANTS = {"v": ["0", "1", "2"], "v-0-name": "a", "v-1-name": "b", "v-2-name": "c"}
ENDS = {"c": "0", "c-0-field": "userId", "c-0-operator": "STR_ENDS_WITH", "c-0-values": "1\n2"}
FORMS: dict[str, tuple[str | Callable[[], str], dict[str, Any]]] = {
    "rollout": (edit_url, strategy_form("80", "NO")),
    "condition": (edit_url, strategy_form("30", "NO", "SE", "DE")),
    "disabled strategy": (edit_url, {"disabled": "on"} | strategy_form("30", "NO")),
    "random": (edit_url, strategy_form("30", "NO") | {"p-stickiness": "random"}),
    "strategy variants": (edit_url, strategy_form("30", "NO") | VARIANTS),
    "deleted strategy": (edit_url, {"do": "delete"}),
    "new strategy": (f"{FLAG}strategies/new?environmentId=production", strategy_form("60", "DE")),
    "variants": (f"{FLAG}variants?environmentId=production", VARIANTS | {"confirmed": "yes"}),
    "segment": (segment_url, {"name": "vip", "confirmed": "yes"} | ENDS),
    "turned off": (f"{FLAG}switch", {"environment": "production", "enabled": "off", "confirmed": "yes"}),
    "turned off with others": (
        "/projects/shop/features/switch",
        {"environment": "production", "enabled": "off", "name": "f", "confirmed": "yes"},
    ),
    "parent": (f"{FLAG}parents", {"feature": "parent", "state": "on"}),
    "parent that is off": (f"{FLAG}parents", {"feature": "parent", "state": "off"}),
    "archive": ("/projects/shop/features/archive", {"name": "f", "known": "yes"}),
}


def measured(before: Any, shown: list[Impact]) -> Iterator[tuple[Any, ...]]:
    """The same numbers as the page's, from what is stored before and after."""
    after = load_snapshot(["shop"], "production").snapshot
    for one in shown:
        yield numbers(Comparison(before, after, one.changes.source.table).flag(one.flag).among(sample()))


def numbers(found: FlagComparison) -> tuple[Any, ...]:
    return {change: found.count(change) for change in Change}, found.before, found.after


def sample() -> int:
    return int.from_bytes(b"\1" * USERS, "little")


@pytest.mark.parametrize("form", FORMS)
def test_the_prediction_is_what_saving_changes(
    browse: Any, flag: Flag, shown: list[Impact], form: str
) -> None:
    address, sent = FORMS[form]
    url, browser = address() if callable(address) else address, browse("admin")
    before, events = load_snapshot(["shop"], "production").snapshot, AuditEvent.objects.count()

    answer = browser.post(f"/if-saved{url}", sent, headers={"HX-Request": "true"})

    assert answer.status_code == 200, answer.text
    assert AuditEvent.objects.count() == events
    [predicted] = shown
    assert predicted.changes.users, "the form should change somebody"
    assert f"{predicted.changes.users:,} of {USERS:,} generated users change" in page_text(answer)
    assert browser.post(url, sent).status_code == 302
    assert [numbers(one.changes.for_users) for one in shown] == list(measured(before, shown))


def test_the_prediction_for_a_flag_that_will_be_turned_on(
    browse: Any, flag: Flag, shown: list[Impact]
) -> None:
    url, browser = "/projects/shop/environments/production/strategy", browse("admin")
    make_flag("new-flag")
    answer = browser.post(f"/if-saved{url}", strategy_form("40", "NO") | {"p-groupId": ""})
    assert "No flag changes." in page_text(answer)
    [predicted] = shown
    table, said = predicted.changes.source.table, predicted.changes.for_users

    assert browser.post(url, strategy_form("40", "NO") | {"p-groupId": ""}).status_code == 302
    enable_flag("shop", "new-flag", "production", caller=Caller.system())

    after = load_snapshot(["shop"], "production").snapshot
    found = Comparison(after, after, table).flag("new-flag").among(sample())
    assert found.after == said.after
    assert {answer.state.value: number for answer, number in said.before.items()} == {"on": USERS}


def page(browse: Any, url: str, sent: dict[str, Any], who: str = "admin") -> str:
    return page_text(browse(who).post(f"/if-saved{url}", sent, headers={"HX-Request": "true"}))


def test_nobody_changes(browse: Any, flag: Flag) -> None:
    assert "No change for 10,000 generated users and" in page(browse, edit_url(), strategy_form("30", "NO"))


def test_a_title_changes_nobody_even_if_only_an_sdk_can_tell(browse: Any, shop: Any) -> None:
    own = {"name": "applicationHostname", "parameters": {"hostNames": "a"}}
    live_flag("f", strategies=[own])
    sent = {"name": own["name"], "p-hostNames": "a", "title": "Other", "switch": "enabled", "enabled": "on"}
    found = page(browse, edit_url(), sent)
    assert "No change" in found
    assert "only an SDK can tell" not in found


def test_flags_that_depend_on_it(browse: Any, flag: Flag, shown: list[Impact]) -> None:
    depend(live_flag("child", strategies=[rollout("100")]), flag)
    depend(live_flag("off", enabled=False), flag)
    found = page(browse, edit_url(), strategy_form("80", "NO"))
    [predicted] = shown
    assert predicted.children == [("child", predicted.changes.users)]
    assert f"Flags that depend on it change too: child for {predicted.changes.users} users." in found


def test_a_flag_that_is_off_says_so_and_what_the_edit_comes_to_once_it_is_on(browse: Any, shop: Any) -> None:
    live_flag("f", strategies=[rollout("10")], enabled=False)
    found = page(browse, f"{FLAG}strategies/new?environmentId=production", strategy_form("60", "NO"))
    once_on = re.search(r"f is off in production\. Once on: ([\d,]+) of 10,000 generated users \(\d", found)
    assert once_on, found
    assert int(once_on[1].replace(",", "")) > 1_000
    assert re.search(rf"Now 0 on · 0 % Once on {once_on[1]} on · \d", found), found


def test_a_flag_that_is_off_and_stays_without_a_strategy(browse: Any, shop: Any) -> None:
    live_flag("f", strategies=[rollout("10")], enabled=False)
    sent = strategy_form("60", "NO")
    del sent["enabled"]
    assert "f is off in production, so nobody changes." in page(browse, edit_url(), sent)


def test_turned_on_without_a_strategy(browse: Any, shop: Any) -> None:
    make_flag("f")
    sent = {"environment": "production", "enabled": "on"}
    assert "10,000 of 10,000 generated users change" in page(browse, f"{FLAG}switch", sent)


def test_a_segment_used_in_production_is_asked_about_first(browse: Any, flag: Flag) -> None:
    url, sent, browser = segment_url(), {"name": "vip"} | ENDS, browse("admin")
    stored = Segment.objects.get().constraints

    asked = browser.post(url, sent)

    assert asked.status_code == 200
    assert "Save segment?" in asked.text
    assert "It is used 1 time in production." in page_text(asked)
    assert Segment.objects.get().constraints == stored
    assert browser.post(url, sent | {"confirmed": "yes"}).status_code == 302
    assert Segment.objects.get().constraints != stored
    assert browser.post(url, sent).status_code == 302  # nothing changes


def test_no_example_twice(browse: Any, shop: Any, shown: list[Impact]) -> None:
    listed = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
    live_flag("f", strategies=[rollout("100", constraints=listed)])
    page(browse, f"{FLAG}switch", {"environment": "production", "enabled": "off"})
    [predicted] = shown
    assert predicted.changes.users == 1
    assert predicted.changes.made
    assert [context.fields for context, _ in predicted.examples] == [{"userId": "7"}]


def test_shares_of_calls(browse: Any, flag: Flag) -> None:
    found = page(browse, edit_url(), strategy_form("30", "NO") | {"p-stickiness": "random"})
    assert "another share of calls" in found
    assert "≈ 30 % of calls" in found or "≈ 44 % of calls" in found


def test_an_error_in_the_form(browse: Any, flag: Flag) -> None:
    for wrong in ("", "abc", "101"):
        found = page(browse, edit_url(), strategy_form(wrong, "NO")).strip()
        assert found.startswith("Not compared yet: SDKs "), wrong
        assert found.endswith("; use a whole number from 0 to 100"), wrong


def test_nothing_to_change(browse: Any, flag: Flag) -> None:
    Strategy.objects.filter(segments__name="vip").delete()
    assert "No flag that is on uses this segment." in page(browse, segment_url(), {"name": "vip"} | ENDS)
    make_flag("off")
    sent = {"feature": "parent"}
    assert "off in every environment" in page(browse, "/projects/shop/features/off/parents", sent)
    assert "off in every environment" in page(browse, "/projects/shop/features/archive", {"name": "off"})


def test_many_flags_are_sampled_with_fewer_users(browse: Any, shop: Any) -> None:
    names = [f"flag-{number}" for number in range(12)]
    for name in names:
        live_flag(name)
    found = page(browse, "/projects/shop/features/archive", {"name": names})
    assert "1,000 of 1,000 generated users change" in found
    assert "2 more flags and environments are not shown." in found


def test_very_many_values_are_compared_for_fewer_users_and_not_while_one_types(
    browse: Any, shop: Any
) -> None:
    many = [{"contextName": "town", "operator": "IN", "values": [f"t{n}" for n in range(30_000)]}]
    live_flag("f", strategies=[rollout("100", constraints=many), {"name": "default"}])
    sent = {"environment": "production", "enabled": "off"}
    assert "60,002 values take too long" in page(browse, f"{FLAG}switch", sent)
    answer = browse("admin").post(f"/if-saved{FLAG}switch", sent)
    assert "200 of 200 generated users change" in page_text(answer)


def test_only_what_the_caller_may_read(browse: Any, flag: Flag) -> None:
    sent = strategy_form("80", "NO")
    assert browse("outsider").post(f"/if-saved{edit_url()}", sent).status_code in (403, 404)
    assert browse("admin").post("/if-saved/projects/shop/", {}).status_code == 404
    assert browse("admin").post("/if-saved/nowhere", {}).status_code == 404
    assert browse("admin").get(f"/if-saved{edit_url()}").status_code == 405


def test_the_page_without_script_leads_back_to_what_was_entered(browse: Any, flag: Flag) -> None:
    browser = browse("admin")
    found = browser.post(f"/if-saved{edit_url()}", strategy_form("80", "NO"))
    assert "Back to the form" in found.text
    assert 'name="p-rollout" value="80"' in found.text
    assert "country NO" in page_text(found)
    assert f'formaction="/if-saved{FLAG}strategies/edit?' in browser.get(edit_url()).text
    asked = {"environment": "production", "enabled": "off"}
    assert (
        'href="/projects/shop/features/f/switch?environment=production'
        in browser.post(f"/if-saved{FLAG}switch", asked).text
    )

"""Why?: the answer of a flag for one user as a path, when it was and will be another, and what would turn it on."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from groups.access import Caller
from groups.models import User
from playground.models import SavedContext
from projects.flags.archive.actions import archive_flags
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.models import Flag, FlagEnvironment, Project, Segment, Strategy
from projects.models.versions import VERSIONS
from releases.derive import ProposedChange
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from releases.schedules.actions import schedule_request
from releases.why.when import MAX_LISTED
from tests.support.flags import depend
from tests.support.page_text import page_text
from tests.support.plans import cart, rollout_of, started, strategy_of
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
SYSTEM = Caller.system()
NORWAY = {"contextName": "country", "operator": "IN", "values": ["NO"]}
YES, NO, OPEN = "yes", "no", "unknown"


def ask(browse: Any, flag: str = "cart", who: str = "viewer", **query: str) -> Any:
    given = {"as": "42", "environment": "production"} | query
    return browse(who).get(f"/projects/shop/features/{flag}/why/", given)


def clean(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))).strip()


def path(page: Any) -> list[tuple[str, str]]:
    """The marks and sentences of the steps."""
    [flow] = re.findall(r'<ol class="flow">(.*?)</ol>', page.text, re.DOTALL)
    steps = re.findall(r'<li class="(\w+)"><b>.*?</span>(.*?)</b>', flow, re.DOTALL)
    return [(css, clean(sentence)) for css, sentence in steps]


def card(page: Any, name: str) -> str:
    found = re.findall(
        rf'<section class="card[^"]*" aria-label="{name}">(.*?)</section>', page.text, re.DOTALL
    )
    return clean(found[0]) if found else ""


def age(days: int) -> None:
    """All present rows count as unchanged since then."""
    then = timezone.now() - timedelta(days)
    Flag.objects.update(created_at=then)
    with connection.cursor() as cursor:
        for versions in VERSIONS.values():
            cursor.execute(f"UPDATE {versions._meta.db_table} SET valid_from = %s", [then])


def test_a_user_beyond_the_rollout_gets_the_least_percentage_that_includes_them(browse, shop):
    cart(5)
    page = ask(browse)
    assert "Why is cart off for userId 42?" in page_text(page)
    [found] = re.findall(r"Raise the rollout from 5 % to (\d+) %", card(page, "What would turn it on"))
    bucket = int(found)
    assert path(page) == [
        (YES, "Switched on in production"),
        (NO, f"Bucket {bucket} of 100"),
    ]
    assert f'<rect class="me" x="{bucket - 1}%"' in page.text
    for share, result in ((bucket - 1, "off"), (bucket, "on")):
        Strategy.objects.update(parameters=strategy_of().parameters | {"rollout": str(share)})
        assert rollout_of() == share
        assert f"Why is cart {result} for userId 42?" in page_text(ask(browse))


def test_a_condition_that_fails_is_named_with_its_value(browse, shop):
    live_flag("cart", strategies=[{"name": "default", "constraints": [NORWAY]}])
    page = ask(browse)
    assert path(page) == [(YES, "Switched on in production"), (NO, "country was not given")]
    assert "country was not given needs one of NO" in card(page, "Answer")
    assert "country must be one of NO" in card(page, "What would turn it on")
    SavedContext.objects.create(
        name="Kari", context={"userId": "42", "properties": {"country": "NO"}}, project_id="shop"
    )
    page = ask(browse, **{"as": "saved:Kari"})
    assert path(page) == [(YES, "Switched on in production"), (YES, "country is NO")]
    assert card(page, "What would turn it on") == ""
    assert "country NO" in page_text(page)


def test_a_user_who_has_it_sees_each_step_and_the_variant(browse, shop):
    variants = [{"name": "blue", "weight": 1000, "stickiness": "userId"}]
    live_flag("cart", variants=variants)
    page = ask(browse)
    assert "Why is cart on for userId 42?" in page_text(page)
    switch, everyone, variant = path(page)
    assert (switch, everyone) == ((YES, "Switched on in production"), (YES, "On for everyone"))
    assert variant[0] == YES
    assert variant[1].endswith("which is variant blue")
    assert "What would turn it on" not in page.text
    assert card(page, "Elsewhere").endswith("Off development Switched off in development")


def test_the_nearest_of_several_strategies_is_shown_and_any_of_them_would_do(browse, shop):
    far = {"contextName": "plan", "operator": "IN", "values": ["pro"]}
    live_flag(
        "cart",
        strategies=[
            {"name": "default", "constraints": [NORWAY, far]},
            {
                "name": "flexibleRollout",
                "parameters": {"rollout": "0", "stickiness": "userId", "groupId": "c"},
            },
        ],
    )
    page = ask(browse, who="admin")
    assert [css for css, _ in path(page)] == [YES, NO]
    assert "The path shows strategy 2 of 2." in page_text(page)
    ways = card(page, "What would turn it on")
    assert re.search(r"one of Raise the rollout from 0 % to \d+ %.*country must be one of NO", ways)
    assert "Strategy 1. Also: plan must be one of pro" in ways
    [edit] = re.findall(r'href="([^"]+)">Roll out…<span class="unseen"> strategy 2', page.text)
    assert browse("admin").get(unescape(edit)).status_code == 200
    assert "Roll out…" not in ask(browse).text


def test_the_user_is_added_by_name_or_to_the_segment_they_lack(browse, shop):
    segment = Segment.objects.create(name="testers", constraints=[NORWAY])
    live_flag("cart", strategies=[{"name": "default"}])
    Strategy.objects.get(environment="production").segments.add(segment)
    page = ask(browse, who="admin")
    [add] = re.findall(r'href="([^"]+)">Add…<span class="unseen"> userId 42', page.text)
    form = page_text(browse("admin").get(unescape(add)))
    assert "On for everyone, where userId is one of 42" in form
    assert f'href="/segments/{segment.pk}/">Add to segment…<span class="unseen"> testers' in page.text
    assert "Add…" not in page_text(ask(browse))
    assert "Add…" not in ask(browse, who="admin", **{"as": "saved:none"}).text


def test_another_moment_is_asked_about_and_stays_in_the_link(browse, shop):
    live_flag("cart")
    age(80)
    disable_flag("shop", "cart", "production", caller=SYSTEM)
    then = (timezone.now() - timedelta(days=10)).replace(microsecond=0)
    page = ask(browse, at=f"{then:%Y-%m-%dT%H:%M:%S}")
    assert "Why was cart on for userId 42?" in page_text(page)
    assert path(page)[0] == (YES, "Switched on in production")
    assert "What would turn it on" not in page.text
    [link] = re.findall(r'data-copy-text="([^"]+)"', page.text)
    assert "Why was cart on for userId 42?" in page_text(browse("viewer").get(unescape(link)))
    assert "Why is cart off" in page_text(ask(browse, at="2100-01-01T00:00:00"))
    early = ask(browse, at="2001-01-01T00:00:00")
    assert early.status_code == 400
    assert "cart was not in this project then" in page_text(early)


def test_a_parent_keeps_it_off_and_has_its_own_page(browse, shop):
    parent = live_flag("cart", strategies=[{"name": "default", "constraints": [NORWAY]}])
    depend(live_flag("child"), parent)
    page = ask(browse, "child")
    assert path(page) == [
        (YES, "Switched on in production"),
        (NO, "Depends on cart, which is off here"),
        (YES, "On for everyone"),
    ]
    [url] = re.findall(r'href="([^"]+)">Why\?<span class="unseen"> cart', page.text)
    assert "Why is cart off for userId 42?" in page_text(browse("viewer").get(unescape(url)))


def test_the_switch_is_needed_besides_the_rest(browse, shop):
    live_flag("cart", enabled=False, strategies=[{"name": "default", "constraints": [NORWAY]}])
    page = ask(browse, who="admin")
    assert path(page)[0] == (NO, "Switched off in production")
    ways = card(page, "What would turn it on")
    assert re.search(r"Switch cart on in production.* and country must be one of NO", ways)
    [switch] = re.findall(r'href="([^"]+)">Switch on…', page.text)
    assert browse("admin").get(unescape(switch)).status_code == 200
    assert "Switch on…" not in ask(browse).text


def test_what_nobody_can_tell_or_what_chance_decides_has_no_way(browse, shop):
    live_flag("cart", strategies=[{"name": "hostGroup"}])
    page = ask(browse)
    assert path(page)[-1][0] == OPEN
    assert "Why is cart unknown for userId 42?" in page_text(page)
    drawn = {"rollout": "50", "stickiness": "random", "groupId": "x"}
    live_flag("dice", strategies=[{"name": "flexibleRollout", "parameters": drawn}])
    page = ask(browse, "dice")
    assert path(page)[-1] == (OPEN, "Random on each call: about 50 % of calls are on")
    assert "What would turn it on" not in page.text


def test_it_says_since_when_by_which_change_and_what_was_before(browse, shop):
    live_flag("cart")
    age(80)
    assert "Now, with no change since" in card(ask(browse), "When")
    disable_flag("shop", "cart", "production", caller=SYSTEM)
    page = ask(browse)
    assert re.search(r"Off Now, since .* On before .* turned .*off", card(page, "When"))
    [change] = re.findall(r'href="([^"]+\?change=\d+)"', page.text)
    assert browse("viewer").get(unescape(change)).status_code == 200
    assert re.findall(r'<rect class="user-(\w+)"', page.text) == ["on", "off"]


def test_a_change_that_this_user_did_not_notice_is_not_listed(browse, shop):
    flag = live_flag("cart")
    age(80)
    Strategy.objects.filter(flag=flag).update(title="Everyone")
    assert "Now, with no change since" in card(ask(browse), "When")


def test_a_condition_on_the_time_turns_it_without_a_change(browse, shop):
    now = timezone.now().replace(microsecond=0)

    def after(days: int) -> dict[str, Any]:
        value = (now + timedelta(days)).isoformat().replace("+00:00", "Z")
        constraint = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": value, "values": []}
        return {"name": "default", "constraints": [constraint]}

    live_flag("cart", strategies=[after(-3)])
    live_flag("soon", strategies=[after(3)])
    age(80)
    assert re.search(r"On Now, since .* Off before .*A condition on the time", card(ask(browse), "When"))
    when = card(ask(browse, "soon"), "When")
    assert re.search(r"On from .*A condition on the time Off Now, with no change", when)


def test_a_release_plan_and_a_scheduled_request_say_when_it_will_be_another(browse, shop, people):
    cart(1)
    started(1, 100)
    page = ask(browse)
    assert re.search(r"On from .*Step .* of the release plan, at the earliest Off Now", card(page, "When"))
    admin = Caller(user=User.objects.get(username="admin"))
    live_flag("other")
    off = ProposedChange("other", "updateEnabled", {"enabled": False})
    request = add_changes("shop", "production", [off], caller=admin)
    set_state("shop", request.pk, "In review", caller=admin)
    schedule_request("shop", request.pk, timezone.now() + timedelta(hours=2), caller=admin)
    page = ask(browse, "other")
    assert re.search(rf"Off from .*Request {request.pk} On Now", card(page, "When"))
    assert f"/change-requests/{request.pk}/" in page.text
    assert '<rect class="user-off later"' in page.text
    assert FlagEnvironment.objects.get(flag__name="other", environment="production").enabled


def test_it_asks_for_a_user_and_keeps_the_answer_as_an_expectation(browse, shop):
    live_flag("cart")
    viewer = browse("viewer")
    page = viewer.get("/projects/shop/features/cart/why/")
    assert "Why does a user get cart, or not?" in page_text(page)
    assert 'name="as"' in page.text
    assert "Should it be on?" not in ask(browse).text
    assert "Save context…" in card(ask(browse, who="admin"), "Expectation")
    saved = SavedContext.objects.create(name="Ada", context={"userId": "42"}, project_id="shop")
    page = ask(browse, who="admin", **{"as": "saved:Ada"})
    [url] = re.findall(r'href="([^"]+enabled=on)"', page.text)
    form = browse("admin").get(unescape(url))
    assert form.status_code == 200
    assert f'<option value="{saved.pk}" selected>' in form.text
    [trace] = re.findall(r'href="([^"]+)">Change values', page.text)
    assert "On for everyone" in page_text(browse("admin").get(unescape(trace)))


def test_who_may_not_read_the_flag_finds_no_page(browse, shop: Project):
    live_flag("cart")
    assert ask(browse, who="outsider").status_code == 404
    assert ask(browse, "nosuch").status_code == 404
    Project.objects.filter(pk="shop").update(mode="private")
    assert ask(browse, who="editor").status_code == 404
    assert ask(browse, who="reader").status_code == 200
    assert ask(browse, who="reader", environment="nowhere").status_code == 200
    archive_flags("shop", ["cart"], caller=SYSTEM)
    assert ask(browse, who="reader").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_its_queries_do_not_grow_with_changes_and_the_list_ends(browse, shop):
    live_flag("cart")
    age(80)

    def turn(times: int) -> int:
        for number in range(times):
            act = enable_flag if number % 2 else disable_flag
            act("shop", "cart", "production", caller=SYSTEM)
        with CaptureQueriesContext(connection) as queries:
            assert ask(browse).status_code == 200
        return len(queries)

    few = turn(2)
    assert turn(20) <= few
    when = card(ask(browse), "When")
    assert "Only the last ones are listed." in when
    assert when.count(" before ") == MAX_LISTED

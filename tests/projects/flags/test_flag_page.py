"""The flag page: environments, evaluations, who uses the flag, variants, history, long states."""

import json
import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.applications.store_report import store_report
from projects.applications.usage_report import Count, FlagUse, Instance, InstanceKey, UsageReport
from projects.flags.environments import actions as environments
from projects.flags.history import SHOWN, drop_flag
from projects.flags.lists.strategy_lines import move_strategy
from projects.history.descriptions import Part
from projects.models import Environment, Flag, FlagUsage, ProjectEnvironment, Strategy
from projects.strategies.fields import make_strategy_document
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text, sentence_text

FLAG = "/projects/shop/features/cart/"
BLUE = {"name": "blue", "weight": 500, "stickiness": "default"}
GREEN = BLUE | {"name": "green"}


@pytest.fixture
def cart(shop):
    return make_flag("cart", description="The new cart")


def use(*apps: str, sdk: str = "unleash-node-sdk:6.1.2", environment: str = "production", **count) -> None:
    now, report = timezone.now(), UsageReport()
    for app in apps:
        key = InstanceKey(app, f"{app}-1", environment)
        report.add_instance(key, Instance(sdk_version=sdk, sdk_type="backend"))
        use = FlagUse(app, "cart", environment)
        report.add_count(use, now, Count(**({"yes": 3, "no": 1} | count)), now=now)
    store_report(report)


def test_evaluations_and_their_share_stand_in_each_environment(browse, cart):
    use("web-shop", yes=3000, no=1000)

    page = browse("reader").get(FLAG)

    assert "4,000 evaluations in 24 hours 75 % on" in page_text(page)
    assert "Evaluations in production, last 24 hours: 4,000, of which 3,000 on" in page.text
    assert "Never evaluated" in page_text(page)  # development


def test_thirty_days_instead_of_24_hours(browse, cart):
    use("web-shop")

    page = browse("reader").get(f"{FLAG}?period=30d")

    assert "4 evaluations in 30 days" in page_text(page)
    assert 'href="?period=30d" aria-current="true"' in page.text


def test_what_the_switch_does_not_say(browse, cart):
    switch_on(cart, "production")
    assert "Enabled without a strategy: on for everyone." in page_text(browse("reader").get(FLAG))
    add_strategy(cart, "production", disabled=True)
    assert "All strategies are disabled: off for everyone." in page_text(browse("reader").get(FLAG))


def test_what_is_on_for_everyone_is_one_line_outside_production(browse, cart):
    for name in ("production", "development"):
        add_strategy(cart, name)
        switch_on(cart, name)
    member = browse("member")
    page = member.get(FLAG).text
    assert 'Strategy<span class="unseen"> in production' in page
    assert "in development</span></a>" in page
    assert "strategy-edit" not in page.partition('id="flag-2"')[2].partition("</section>")[0]
    for address in (f"{FLAG}?environment=development", FLAG):
        card = member.get(address).text.partition('id="flag-2"')[2].partition("</section>")[0]
        assert "Roll out<span" in card
        Strategy.objects.filter(environment="development").update(
            title="Beta"
        )  # nothing of one's own is folded


def test_who_uses_it_with_versions(browse, cart):
    use("web-shop", sdk="unleash-node-sdk:6.1.2")
    use("old-shop", sdk="unleash-node-sdk:5.0.0")

    page = page_text(browse("reader").get(FLAG))

    assert "web-shop 1 instance · unleash-node-sdk 6.1.2 production" in page
    assert "old-shop 1 instance · unleash-node-sdk 5.0.0 (outdated) production" in page


def test_variants_as_configured_and_as_measured(browse, cart):
    add_strategy(cart, "production", variants=[BLUE, GREEN])
    use("web-shop", yes=4, variants={"blue": 3, "green": 1})

    page = page_text(browse("reader").get(FLAG))

    assert "blue50 %75 %3 green50 %25 %1" in page


def test_a_child_in_another_project_is_linked_there(browse, cart):
    depend(make_flag("child", make_project("store")), cart, enabled=False)

    page = browse("admin").get(FLAG)

    assert "Needed by child when off" in page_text(page)
    assert 'href="/projects/store/features/child/"' in page.text


# History ----------------------------------------------------------------------------------------------------


def changed(environment: str, before: str, after: str, cart: Flag) -> None:
    shares = ({"rollout": share, "stickiness": "default"} for share in (before, after))
    sides = [
        make_strategy_document(Strategy(name="flexibleRollout", parameters=share)) | {"segments": []}
        for share in shares
    ]
    record(
        Event(
            type=EventType.FEATURE_STRATEGY_UPDATE, project="shop", feature=cart.name,
            environment=environment, before=sides[0], after=sides[1],
        ),
        actor=Caller.system(),
    )  # fmt: skip


def test_history_in_all_environments_or_one(browse, cart):
    changed("production", "25", "50", cart)
    changed("development", "50", "75", cart)
    browser = browse("reader")

    page = browser.get(FLAG)
    assert "<del>25 %</del>" in page.text
    assert "moved a strategy in production from 25 % to 50 %" in page_text(page)
    assert "All 2 changes" in page_text(page)

    page = browser.get(f"{FLAG}?history=production")
    assert "from 25 % to 50 %" in page_text(page)
    assert "from 50 % to 75 %" not in page_text(page)
    assert "/activity/?project=shop&amp;flag=cart&amp;environment=production" in page.text


def test_each_version_is_evaluated_and_compared_with_now_where_it_is_chosen(browse, cart):
    environments.enable_flag("shop", "cart", "production", caller=Caller.system())
    then = AuditEvent.objects.latest("id").created_at
    environments.disable_flag("shop", "cart", "production", caller=Caller.system())
    AuditEvent.objects.create(type="feature-tagged", project="shop", feature="cart", actor_name="ada")
    browser = browse("reader")

    page = browser.get(FLAG).text
    chosen = re.findall(r'href="(\?version=\d+)#history"', page)
    assert len(chosen) == 2  # off and on, not the tag
    assert "Evaluate at this time" not in page
    page = browser.get(f"{FLAG}{chosen[1]}").text
    assert 'href="?#history"' in page
    at = quote(iso(then), safe="")
    evaluate = f"/playground/flag/cart/?project=shop&amp;environment=production&amp;at={at}"
    compare = f"?from=production&amp;from-at={at}&amp;to=production&amp;project=shop&amp;flag=cart"
    assert page.count("Evaluate at this time") == 1
    assert page.count(evaluate) == 1
    assert page.count(compare) == 1


def test_the_page_shows_only_the_last_changes(browse, cart):
    for share in range(SHOWN + 2):
        changed("production", str(share), str(share + 1), cart)

    page = browse("reader").get(FLAG)

    assert page.text.count("<del>") == SHOWN
    assert f"All {SHOWN + 2} changes" in page_text(page)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["changed strategy 1 of ", "cart", " in production"], "changed strategy 1 in production"),
        (["turned ", "cart", " on in production"], "turned the flag on in production"),
        (["created ", "cart"], "created the flag"),
        (["removed the tag simple:x from ", "cart"], "removed the tag simple:x"),
        (["archived ", "2 flags", ": ", "gift", " and ", "cart"], "archived this flag and gift"),
        (
            ["turned ", "3 flags", " on", ": ", "a", ", ", "cart", " and ", "z"],
            "turned this flag, a and z on",
        ),
        (["made ", "gift", " depend on ", "cart"], "made gift depend on the flag"),
    ],
)
def test_the_flag_has_no_name_in_its_own_history(before, after):
    parts = [Part(text, url="/" if text in ("cart", "gift") else "") for text in before]
    assert sentence_text(list(drop_flag(parts, "cart"))) == after


# Files ------------------------------------------------------------------------------------------------------


def test_json_is_what_the_api_returns(browse, api, cart):
    file = browse("reader").get(f"{FLAG}?format=json")

    assert file["Content-Disposition"] == 'attachment; filename="cart.json"'
    assert json.loads(file.content) == api["reader"].get("/api/admin/projects/shop/features/cart").json()


def test_csv_has_a_line_for_each_hour(browse, cart):
    use("web-shop")

    lines = browse("reader").get(f"{FLAG}?format=csv").getvalue().decode().splitlines()

    assert lines[0] == "Environment,From (UTC),On,Off"
    assert len(lines) == 1 + 2 * 24
    assert sum(line.endswith(",3,1") for line in lines) == 1


# Actions ----------------------------------------------------------------------------------------------------


def test_a_strategy_moves_one_step(browse, cart):
    first, second = add_strategy(cart, sort_order=0), add_strategy(cart, sort_order=1)
    ids = f"{first.pk},{second.pk}"
    assert ids in browse("member").get(FLAG).text

    form = {"environment": "development", "order": ids, "move": f"down {first.pk}"}
    browse("member").post(f"{FLAG}order", form)

    assert list(cart.strategies.order_by("sort_order")) == [second, first]


@pytest.mark.parametrize(
    ("move", "order"),
    [("up b", "bac"), ("down b", "acb"), ("up a", "abc"), ("down c", "abc"), ("", "abc"), ("up x", "abc")],
)
def test_moving_within_an_order(move, order):
    assert move_strategy(list("abc"), move) == list(order)


def test_impression_data_is_turned_on_and_off(browse, cart):
    browser = browse("member")
    for wanted in ("on", "off"):
        browser.post(f"{FLAG}impression-data", {"impression_data": wanted})
        cart.refresh_from_db()
        assert cart.impression_data is (wanted == "on")
    assert browse("reader").post(f"{FLAG}impression-data", {"impression_data": "on"}).status_code == 403


@for_each(("verb", "who"), [("clone", "member"), ("move", "admin")])
def test_copying_and_moving_have_a_form(browse, cart, verb, who):
    make_project("store")
    page = browse(who).get(f"{FLAG}{verb}")
    assert page.status_code == 200
    assert ("Store (store)" in page_text(page)) == (verb == "move")
    assert browse("reader").get(f"{FLAG}{verb}").status_code == 403


def test_why_it_cannot_be_moved_stands_in_the_form(browse, cart):
    make_project("store")
    depend(make_flag("child"), cart)

    refused = browse("admin").post(f"{FLAG}move", {"project": "store"})

    assert "child depends on cart" in page_text(refused)
    assert Flag.objects.get(name="cart").project_id == "shop"


def test_a_taken_name_stands_beside_the_name_of_the_copy(browse, cart):
    make_flag("cart-2")
    refused = browse("member").post(f"{FLAG}clone", {"new_name": "cart-2"})
    assert refused.status_code == 409
    assert "A flag named cart-2 already exists" in page_text(refused)


def test_archiving_asks_says_what_uses_it_and_warns_of_recent_use(browse, cart):
    switch_on(cart, "production")
    use("web-shop")

    page = browse("member").get(f"/projects/shop/features/archive?name=cart&next={FLAG}")

    text = page_text(page)
    assert "cart was evaluated by web-shop just now." in text
    assert 'class="note warn"' in page.text
    assert "Last evaluated just now by web-shop in production Needed byNo other flag On inproduction" in text
    assert f'<a href="{FLAG}" class="btn quiet">Cancel</a>' in page.text

    FlagUsage.objects.update(last_used_at=timezone.now() - timedelta(days=40))

    page = browse("member").get("/projects/shop/features/archive?name=cart")

    assert "evaluated by web-shop 1 month ago" in page_text(page)
    assert 'class="note warn"' not in page.text


def test_who_evaluated_it_may_be_unknown(browse, cart):
    use("web-shop")
    FlagUsage.objects.all().delete()
    page, archiving, in_production, in_development = (
        browse("member").get(address)
        for address in (
            FLAG,
            "/projects/shop/features/archive?name=cart",
            f"{FLAG}switch?environment=production&enabled=off",
            f"{FLAG}switch?environment=development&enabled=off",
        )
    )
    unknown = "; by which application is not known."

    assert f"Last evaluated just now in production{unknown}" in page_text(page)
    assert f"Last evaluated just now in production{unknown}" in page_text(archiving)
    assert 'class="note success"' not in archiving.text
    assert f"Last evaluated just now{unknown}" in page_text(in_production)
    assert "No application has evaluated it here." in page_text(in_development)


# Long states ------------------------------------------------------------------------------------------------


def test_thirty_environments_with_thirty_strategies_of_250_constraints(browse, cart):
    constraints = [{"contextName": "c" * 90, "operator": "IN", "values": ["v" * 100]}] * 250
    for number in range(28):
        environment = Environment.objects.create(name=f"environment-{number}", type="test", sort_order=number)
        ProjectEnvironment.objects.create(project_id="shop", environment=environment)
        use("web-shop", "ios-app", environment=environment.name)
    Strategy.objects.bulk_create(
        Strategy(
            flag=cart, environment=environment, name="default", sort_order=number, title="t" * 200,
            variants=[BLUE, GREEN],
        )
        for environment in Environment.objects.all()
        for number in range(30)
    )  # fmt: skip
    Strategy.objects.filter(environment__name__endswith="5").update(constraints=constraints)  # 1.5 MB in each
    browser = browse("member")
    for query, shown in {"": 0, "?period=30d": 0, "?environment=environment-25": 30}.items():
        page = browser.get(FLAG + query)

        assert len(page.content) < 300_000, f"{query}: {len(page.content):,}"
        assert "30 strategies" in page_text(page)
        place = page.text[page.text.index('aria-label="environment-25"') :].split("</section>")[0]
        assert place.count('class="strategy"') == shown


def test_the_address_of_insights_leads_to_the_flag(browse, shop):
    make_flag("cart")
    assert (
        browse("viewer").get("/projects/shop/features/cart/insights/").url == "/projects/shop/features/cart/"
    )

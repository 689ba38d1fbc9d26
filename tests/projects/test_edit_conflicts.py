"""Forms of what decides who gets a flag: what somebody else has changed meanwhile is told, not overwritten."""

import re
from html import unescape

import pytest

from projects.models import Flag, Segment
from tests.support.flags import add_strategy, make_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race
from tests.support.scenery import make_vocabulary

FLAG = "/projects/shop/features/cart/"


def words(response):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.text)))


def seen(response):
    return re.search(r'name="seen" value="([^"]+)"', response.text)[1]


class Strategy:
    who = "member"
    first, second, third = (
        {"p-rollout": share, "p-stickiness": "userId", "title": "Ours", "disabled": "on"}
        for share in ("10", "20", "30")
    )
    told = "admin changed a strategy of cart in production"
    says = "It says now: On for 10 % by userId. (Ours, disabled)"

    def __init__(self, flag):
        made = add_strategy(flag, "production", "flexibleRollout", parameters={"rollout": "1"})
        self.url = f"{FLAG}strategies/edit?environmentId=production&strategyId={made.pk}"
        self.row = made

    def stored(self):
        self.row.refresh_from_db()
        return self.row.parameters["rollout"]


class Variants:
    who = "member"
    first, second, third = ({"v": "0", "v-0-name": name} for name in ("10", "20", "30"))
    told = "admin changed the variants of cart in production"
    says = "It says now: Variants: 10 100 %"

    def __init__(self, flag):
        self.url = f"{FLAG}variants?environmentId=production"
        self.row = flag.environments.get(environment="production")

    def stored(self):
        self.row.refresh_from_db()
        return self.row.variants[0]["name"]


class OfSegment:
    who = "editor"
    first, second, third = (
        {"name": "vip", "c": "0", "c-0-field": "plan", "c-0-operator": "STR_CONTAINS", "c-0-values": share}
        for share in ("10", "20", "30")
    )
    told = "admin changed segment vip"
    says = "It says now: plan is a text containing 10. (vip, for all projects)"

    def __init__(self, flag):
        make_vocabulary()
        self.row = Segment.objects.create(name="vip", constraints=[])
        self.url = f"/segments/{self.row.pk}/"

    def stored(self):
        self.row.refresh_from_db()
        return self.row.constraints[0]["values"][0]


@pytest.fixture(params=[Strategy, Variants, OfSegment])
def form(request, shop):
    return request.param(make_flag("cart"))


def test_what_somebody_else_saved_meanwhile_is_told_and_stays(browse, form):
    mine = seen(browse(form.who).get(form.url))
    assert browse("admin").post(form.url, form.first | {"seen": mine}).status_code == 302

    refused = browse(form.who).post(form.url, form.second | {"seen": mine})

    assert refused.status_code == 409
    assert "changed since you opened this page. Nothing was saved." in words(refused)
    assert form.told in words(refused)
    assert form.says in words(refused)
    assert 'value="20"' in refused.text or ">20<" in refused.text  # what was entered is still there
    assert form.stored() == "10"


def test_saved_again_it_replaces_that(browse, form):
    mine = seen(browse(form.who).get(form.url))
    browse("admin").post(form.url, form.first | {"seen": mine})
    refused = browse(form.who).post(form.url, form.second | {"seen": mine})

    assert browse(form.who).post(form.url, form.second | {"seen": seen(refused)}).status_code == 302
    assert form.stored() == "20"


def test_once_more_is_asked_once_more(browse, form):
    mine = seen(browse(form.who).get(form.url))
    browse("admin").post(form.url, form.first | {"seen": mine})
    refused = browse(form.who).post(form.url, form.second | {"seen": mine})
    browse("admin").post(form.url, form.third | {"seen": seen(browse("admin").get(form.url))})

    assert browse(form.who).post(form.url, form.second | {"seen": seen(refused)}).status_code == 409
    assert form.stored() == "30"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_two_at_once_one_is_saved(transactional_db, browse, form, stop):
    mine = seen(browse(form.who).get(form.url))

    def save(who, sent):
        browser = browse(who)
        return lambda: browser.post(form.url, sent | {"seen": mine}).status_code

    # Stopped before its lock the first finds what the second has saved; before its commit it has saved already.
    expected = (409, 302) if stop == BEFORE_LOCK else (302, 409)
    assert race(save(form.who, form.first), save("admin", form.second), stop=stop) == expected
    assert form.stored() == ("20" if stop == BEFORE_LOCK else "10")


def test_looking_at_what_it_says_does_not_agree_to_it(browse, form):
    """The form is drawn again with every row that is added; what was seen first counts."""
    mine = seen(browse(form.who).get(form.url))
    browse("admin").post(form.url, form.first | {"seen": mine})

    drawn = browse(form.who).post(form.url, form.second | {"seen": mine, "do": "refresh"})

    assert seen(drawn) == mine


def test_what_changed_elsewhere_does_not_matter(browse, form):
    mine = seen(browse(form.who).get(form.url))
    add_strategy(make_flag("other"), "production")
    add_strategy(Flag.objects.get(name="cart"), "production")
    Flag.objects.filter(name="cart").update(description="Changed")

    assert browse(form.who).post(form.url, form.second | {"seen": mine}).status_code == 302


@pytest.mark.parametrize("sent", ["x", "x.y", f"x.{'9' * 30}", "x.²"])
def test_a_form_of_something_else_is_refused(browse, form, sent):
    assert browse(form.who).post(form.url, form.second | {"seen": sent}).status_code == 409


def test_another_place_in_the_order_is_no_change(browse, shop):
    form = Strategy(make_flag("cart"))
    mine = seen(browse(form.who).get(form.url))
    form.row.sort_order = 7
    form.row.save()

    assert browse(form.who).post(form.url, form.second | {"seen": mine}).status_code == 302
    assert form.stored() == "20"

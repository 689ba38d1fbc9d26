"""Forms, confirmations and import previews name the saved contexts that change and the expectations that break."""

import json

import pytest

from playground.models import SavedContext
from projects.models import Project, Segment, Strategy
from tests.support.flags import add_strategy
from tests.support.import_bodies import body, strategy, switch
from tests.support.page_text import page_text
from tests.support.playground import live_flag

LOUNGE = "/projects/shop/features/lounge/"
NOT_7 = [{"contextName": "userId", "operator": "NOT_IN", "values": ["7"]}]
EXPECTS = {"flag": "lounge", "environment": "production", "enabled": True, "variant": None}
BROKEN = "Breaks 1 expectation"
SENTENCE = "lounge is off in production for Bea, expected on"


@pytest.fixture
def lounge(shop):
    SavedContext.objects.create(
        name="Bea", context={"userId": "7"}, expectations=[EXPECTS], enforced_in={"lounge": "shop"}
    )
    SavedContext.objects.create(name="Carl", context={"userId": "8"}, project=shop)
    return live_flag("lounge")


def beside(browse, url, sent, who="member"):
    answer = browse(who).post(f"/if-saved{url}", sent, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return page_text(answer)


def test_turning_off_in_production(browse, lounge):
    sent = {"environment": "production", "enabled": "off"}
    shown = beside(browse, f"{LOUNGE}switch", sent)
    assert BROKEN in shown
    assert SENTENCE in shown
    assert "2 saved contexts change" in shown
    assert "Bea lounge On → to Off" in " ".join(shown.replace("→", " → ").split())
    assert "refuses" not in shown
    Project.objects.update(refuse_broken_expectations=True)
    assert "Project Shop refuses that" in beside(browse, f"{LOUNGE}switch", sent)
    confirmation = browse("member").get(f"{LOUNGE}switch", sent)
    assert f'hx-post="/if-saved{LOUNGE}switch' in confirmation.text


def test_a_strategy_while_typing_and_its_page(browse, lounge):
    url = f"{LOUNGE}strategies/edit?environmentId=production&strategyId={Strategy.objects.get().pk}"
    sent = {"name": "default", "switch": "enabled", "enabled": "on"}
    assert "expectation" not in beside(browse, url, sent)
    assert "saved context" not in beside(browse, url, sent)
    condition = {"c": "0", "c-0-field": "userId", "c-0-operator": "NOT_IN", "c-0-values": "7"}
    shown = beside(browse, url, sent | condition)
    assert BROKEN in shown
    assert "1 saved context changes" in shown
    page = page_text(browse("member").post(f"/if-saved{url}", sent | condition))
    assert SENTENCE in page


def test_a_segment(browse, lounge):
    Strategy.objects.all().delete()
    vip = Segment.objects.create(name="vip", constraints=[])
    add_strategy(lounge, "production", segments=(vip,))
    sent = {"name": "vip", "c": "0", "c-0-field": "userId", "c-0-operator": "NOT_IN", "c-0-values": "7"}
    shown = beside(browse, f"/segments/{vip.pk}/", sent, who="editor")
    assert SENTENCE in shown


def test_archiving(browse, lounge):
    assert SENTENCE in beside(browse, "/projects/shop/features/archive", {"name": "lounge", "known": "yes"})


def test_what_is_mended(browse, lounge):
    Strategy.objects.all().delete()
    add_strategy(lounge, "production", constraints=NOT_7)
    url = f"{LOUNGE}strategies/edit?environmentId=production&strategyId={Strategy.objects.get().pk}"
    shown = beside(browse, url, {"name": "default", "switch": "enabled", "enabled": "on"})
    assert "Meets 1 expectation that is not met now." in shown
    assert BROKEN not in shown


def test_an_import_preview_and_its_page(browse, lounge):
    sent = body(
        "lounge",
        environment="production",
        featureStrategies=[strategy("lounge", name="default", constraints=NOT_7)],
        featureEnvironments=[switch("lounge")],
    )
    browser = browse("admin")
    url = browser.post("/import/", {"text": json.dumps(sent["data"])} | where(sent))["Location"]
    part = browser.get(f"{url}who-changes/", headers={"HX-Request": "true", "HX-Target": "who-changes"})
    assert BROKEN in page_text(part)
    assert SENTENCE in page_text(browser.get(f"{url}who-changes/"))


def where(sent):
    return {"project": sent["project"], "environment": sent["environment"]}

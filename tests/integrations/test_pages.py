"""The pages of integrations: add one, change it, look at what was sent, send it again."""

import re
from itertools import chain

import pytest
from bs4 import BeautifulSoup

from flagadmin.core.audit.events import EventType, group_types
from flagadmin.core.audit.sentences import make_label
from groups.models import User
from integrations.addons.forms import list_offered_events
from integrations.models import Delivery, Integration
from integrations.providers import MASK, PROVIDERS
from tests.support.page_text import page_text
from tests.support.receiver import deliver, receiver
from tests.support.walks import read_text

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_from_nothing_to_a_delivery_that_is_sent_again(browse, receiver, api, shop):
    admin = browse("admin")
    assert "No integrations yet." in page_text(admin.get("/integrations/"))
    form = {
        "description": "Channel",
        "enabled": "on",
        "parameter_url": f"{receiver.url}/hook",
        "events_flags": ["feature-created"],
        "other_events": "segment-created, feature-tagged",
    }
    created = admin.post("/integrations/new/webhook", form)
    integration = Integration.objects.get()
    assert (created.status_code, created.url) == (302, f"/integrations/{integration.pk}/")
    assert integration.events == ["feature-created", "segment-created", "feature-tagged"]
    User.objects.filter(username="admin").update(name="Ada Min")
    api["admin"].post("/api/admin/projects/shop/features", {"name": "cart"})
    deliver()
    log = f"/integrations/{integration.pk}/deliveries/"
    text = page_text(admin.get(log))
    assert "Ada Min created flag cart" in text
    assert "Webhook request was successful with status code: 200." in text
    assert '"project": "shop"' in text  # as JSON, as it was sent
    again = admin.post(f"{log}{Delivery.objects.get().pk}/again")
    assert (again.status_code, again.url) == (302, log)
    deliver()
    assert [request.json()["featureName"] for request in receiver.got] == ["cart", "cart"]
    page = f"/integrations/{integration.pk}/"
    admin.post(f"{page}test")
    waiting = BeautifulSoup(admin.get(page).text, "html.parser").select_one("#test-result")
    assert (read_text(waiting), waiting["hx-get"]) == ("Waiting", page)
    deliver()
    result = BeautifulSoup(admin.get(page).text, "html.parser").select_one("#test-result")
    assert read_text(result).startswith("Delivered Webhook request was successful with status code: 200.")
    assert not result.has_attr("hx-get")
    assert receiver.got[-1].json()["type"] == "integration-test"
    assert "Test" in page_text(admin.get(log))


def test_the_form_keeps_secrets_and_shows_problems(browse, receiver):
    admin = browse("admin")
    admin.post("/integrations/new/datadog", {"enabled": "on", "parameter_apiKey": "dd-key"})
    page = f"/integrations/{Integration.objects.get().pk}/"
    shown = admin.get(page).text
    assert MASK in shown
    assert "dd-key" not in shown
    version = re.search(r'name="expected" value="([^"]+)"', shown)[1]
    sent = {"parameter_apiKey": MASK, "parameter_url": "nowhere", "expected": version}
    refused = admin.post(page, sent)
    assert refused.status_code == 400
    assert "Must be a URL like" in page_text(refused)
    admin.post(page, sent | {"parameter_url": "", "description": "Ours"})
    stored = Integration.objects.get()
    assert (stored.description, stored.enabled) == ("Ours", False)
    assert stored.secrets()["parameters"] == {"apiKey": "dd-key"}
    made = admin.post(f"{page}signing-key", follow=True)
    assert "whsec_" in made.text
    assert admin.post(f"{page}delete").status_code == 302
    assert not Integration.objects.exists()


def test_a_new_integration_sends_what_changes_production_and_its_events_are_folded(browse):
    page = BeautifulSoup(browse("admin").get("/integrations/new/slack-app").text, "html.parser")
    assert page.select_one("[name=production_only]").has_attr("checked")
    boxes = page.select("[type=checkbox][name^=events_]")
    folded = page.select_one("form.card details")
    assert len(boxes) > 50
    assert folded.select("[type=checkbox]") == boxes
    assert not folded.has_attr("open")
    number = f"{len(boxes)} of {len(boxes)} kinds of events"
    assert read_text(folded.select_one("summary")).startswith(number)
    refused = browse("admin").post("/integrations/new/slack-app", {"events_flags": "no"})
    assert BeautifulSoup(refused.text, "html.parser").select_one("form.card details").has_attr("open")


def test_who_may(browse, receiver):
    viewer = browse("viewer")
    assert "Add an integration" not in viewer.get("/integrations/").text
    assert viewer.get("/integrations/new/webhook").status_code == 403
    assert browse("admin").get("/integrations/new/nope").status_code == 404


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda provider: provider.name)
def test_every_offered_event_has_a_group(provider):
    offered = list_offered_events(provider)
    assert sorted(chain.from_iterable(group_types(offered).values())) == offered


def test_labels_of_all_events_are_whole_sentences_without_names():
    words = "(of|to|in|for|from|as|about|by|with)"
    broken = re.compile(
        rf"[{{}}]| {words}( {words}\b|$)|^(Created|Changed|Deleted|Revoked|Started) (?!an? |the |who |what )"
    )
    assert [label for label in map(make_label, EventType) if broken.search(label)] == ["Logged in"]


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (EventType.API_TOKEN_CREATED, "Created an API token"),
        (EventType.USER_DELETED, "Deleted a user"),
        (EventType.CHANGE_REQUEST_SENT_TO_REVIEW, "Sent a change request for review"),
        (EventType.EXPECTATION_OVERRIDDEN, "Broke what a saved context expects of a flag"),
        (EventType.FEATURE_REVERTED, "Reverted a flag to an earlier state"),
        (EventType.PROJECT_ENVIRONMENT_REMOVED, "Removed an environment from a project"),
    ],
)
def test_labels_name_what_it_is_with_an_article(kind, label):
    assert make_label(kind) == label


def test_the_form_shows_what_events_tell_with_their_names(browse):
    text = page_text(browse("admin").get("/integrations/new/webhook"))
    assert "Change requests" in text
    assert re.search(r"Turned off a flag\s*feature-environment-disabled", text)

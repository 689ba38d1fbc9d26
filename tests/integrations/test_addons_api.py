"""/api/admin/addons: what is stored, what is hidden, and what is refused."""

import json

import pytest

from flagadmin.core.audit.models import AuditEvent
from integrations.models import Delivery, Integration
from integrations.providers import MASK, PROVIDERS
from tests.support.receiver import make_integration

ADDONS = "/api/admin/addons"
WEBHOOK = {
    "provider": "webhook",
    "parameters": {
        "url": "https://a.example/hook",
        "authorization": "Bearer s3cret",
        "contentType": "text/plain",
    },
    "events": ["feature-created"],
}
pytestmark = pytest.mark.django_db


def send(client, body, *, to=None, status=200):
    method, path = (client.put, f"{ADDONS}/{to}") if to else (client.post, ADDONS)
    answer = method(path, body)
    assert answer.status_code == status, answer.content
    return answer.json()


def test_create_read_replace_and_delete_without_ever_showing_a_secret(api):
    editor = api["editor"]
    created = send(editor, WEBHOOK, status=201)
    assert created["parameters"] == {"url": MASK, "authorization": MASK, "contentType": "text/plain"}
    one = f"{ADDONS}/{created['id']}"
    assert editor.get(one).json() == created
    listed = api["viewer"].get(ADDONS).json()
    assert listed["addons"] == [created]
    assert [provider["name"] for provider in listed["providers"]] == list(PROVIDERS)
    parameters = {"url": MASK, "authorization": "Bearer other"}
    changed = send(editor, WEBHOOK | {"description": "Ours", "parameters": parameters}, to=created["id"])
    assert (changed["description"], changed["parameters"]) == ("Ours", {"url": MASK, "authorization": MASK})
    stored = Integration.objects.get()
    assert stored.secrets()["parameters"] == {
        "url": "https://a.example/hook",
        "authorization": "Bearer other",
    }
    assert editor.delete(one).status_code == 200
    events = AuditEvent.objects.filter(type__startswith="addon-config-").order_by("id")
    assert [event.type for event in events] == [
        "addon-config-created",
        "addon-config-updated",
        "addon-config-deleted",
    ]
    shown = json.dumps([[event.before, event.after] for event in events]) + stored.encrypted
    assert not any(secret in shown for secret in ("s3cret", "other", "a.example"))


@pytest.mark.parametrize("kind", ["user-login-failed", "api-token-created", "group-updated"])
def test_nobody_has_events_sent_that_they_may_not_read(api, kind):
    """Who logs in and who may do what is for those who may read the login history, whichever way it takes."""
    editor, told = api["editor"], WEBHOOK | {"events": ["feature-created", kind]}
    assert send(editor, told, status=403)["permissions"] == ["READ_LOGS"]
    one = send(api["admin"], told, status=201)["id"]
    elsewhere = WEBHOOK | {"parameters": {"url": "https://b.example/hook"}}
    for body in (told, elsewhere):
        assert send(editor, body, to=one, status=403)["permissions"] == ["READ_LOGS"]
    event = AuditEvent.objects.create(type=kind, actor_name="admin")
    delivery = Delivery.objects.create(integration_id=one, event_id=event.pk)
    send(api["admin"], WEBHOOK, to=one)
    send(editor, elsewhere, to=one)
    again = f"{ADDONS}/{one}/events/{delivery.pk}/resend"
    assert [api[name].post(again).status_code for name in ("editor", "admin")] == [403, 202]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"provider": "nope"}, "Unknown addon provider nope"),
        ({"provider": "teams"}, "This integration is deprecated"),
        ({"parameters": {}}, "Missing required parameters: url"),
        ({"provider": "new-relic", "parameters": {}}, "Missing required parameters: url,licenseKey"),
        ({"parameters": {"url": MASK}}, "Missing required parameters: url"),
        ({"parameters": {"url": "https://a.example/", "authorization": MASK}}, "***** stands for nothing"),
        ({"provider": "datadog", "parameters": {"apiKey": "k", "customHeaders": MASK}}, "stands for nothing"),
        ({"parameters": {"url": "not a url"}}, "must be a URL"),
        ({"parameters": {"url": "ftp://a.example/"}}, "must be a URL"),
        ({"parameters": {"url": "https://user:pass@a.example/"}}, "must be a URL"),
        ({"parameters": {"url": "https://a.example:99999/"}}, "must be a URL"),
        ({"parameters": {"url": "https://a.example:0/"}}, "must be a URL"),
        ({"parameters": {"url": "https://a.example/", "authorization": "a\nb"}}, "printable ASCII"),
        ({"parameters": {"url": "https://a.example/", "bodyTemplate": "{{#event}}"}}, "is not closed"),
        ({"parameters": {"url": "https://a.example/", "other": "x"}}, "is not a parameter of webhook"),
    ],
)
def test_what_is_refused(api, changes, says):
    assert says in json.dumps(send(api["editor"], WEBHOOK | changes, status=400))
    assert not Integration.objects.exists()


@pytest.mark.parametrize("url", ["https://evil.example/", "http://a.example/", "https://a.example:8443/"])
def test_a_kept_secret_goes_to_no_other_server(api, url):
    stored = make_integration("https://a.example/hook", secrets={"authorization": "Bearer s3cret"})
    body = WEBHOOK | {"parameters": {"url": url, "authorization": MASK}}
    assert "leads to another server" in json.dumps(send(api["editor"], body, to=stored.pk, status=400))
    datadog = {"provider": "datadog", "parameters": {"apiKey": MASK}}
    assert "Missing required parameters: apiKey" in json.dumps(
        send(api["editor"], datadog, to=stored.pk, status=400)
    )


def test_a_secret_that_cannot_be_read_any_more_is_not_left_out_unseen(api, settings):
    stored = make_integration("https://a.example/hook", secrets={"authorization": "Bearer s3cret"})
    settings.SECRET_KEY = "another-key-that-is-long-enough-for-this-1234567890"
    settings.SECRET_KEY_FALLBACKS = []
    parameters = {"url": "https://a.example/hook", "authorization": MASK}
    refused = send(api["editor"], WEBHOOK | {"parameters": parameters}, to=stored.pk, status=400)
    assert "parameters.authorization" in json.dumps(refused)
    left_out = WEBHOOK | {"parameters": parameters | {"authorization": ""}}
    assert send(api["editor"], left_out, to=stored.pk)["parameters"] == {"url": MASK}


def test_a_signing_key_does_not_replace_secrets_that_cannot_be_read(api, settings):
    stored = make_integration("https://a.example/hook")
    before, key = stored.encrypted, settings.SECRET_KEY
    settings.SECRET_KEY = "another-key-that-is-long-enough-for-this-1234567890"
    settings.SECRET_KEY_FALLBACKS = []
    refused = api["editor"].post(f"{ADDONS}/{stored.pk}/signing-key")
    assert (refused.status_code, refused.json()["message"]) == (
        403,
        "SECRET_KEY has changed. Enter the secrets of this integration again.",
    )
    settings.SECRET_KEY = key
    stored.refresh_from_db()
    assert stored.encrypted == before
    assert stored.secrets()["parameters"] == {"url": "https://a.example/hook"}


def test_rights_and_what_is_missing(api):
    stored = make_integration("https://a.example/hook")
    send(api["viewer"], WEBHOOK, status=403)
    send(api["viewer"], WEBHOOK, to=stored.pk, status=403)
    assert api["editor"].get(f"{ADDONS}/{stored.pk}/events").status_code == 403
    assert api["admin"].get(f"{ADDONS}/99999/events").json() == {"integrationEvents": []}
    assert api["editor"].get(f"{ADDONS}/99999").status_code == 404
    conflict = api["editor"].put(f"{ADDONS}/{stored.pk}", WEBHOOK, HTTP_IF_MATCH='"old"')
    assert conflict.status_code == 412

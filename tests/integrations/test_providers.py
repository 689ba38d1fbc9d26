"""What each provider's receiver gets for an event, as the reference was recorded to send it."""

import json
from datetime import UTC, datetime

import pytest

from flagadmin.core.audit.models import AuditEvent
from integrations.messages.message import Message, markdown
from integrations.messages.outgoing import TemplateError, render
from integrations.providers import PROVIDERS

PAGE = "https://flags.example.com/projects/default"
FLAG = f"[hook-flag]({PAGE}/features/hook-flag/)"
CREATED = f"*admin* created *{FLAG}* in project *[default]({PAGE}/)*"


@pytest.fixture(autouse=True)
def public_url(db, monkeypatch):
    monkeypatch.setattr("flagadmin.core.server.background_tasks.public_url", "https://flags.example.com")


def event(kind="feature-created", **fields) -> AuditEvent:
    given = {
        "project": "default",
        "feature": "hook-flag",
        "actor_name": "admin",
        "actor_id": 1,
        "comment": "",
    } | fields
    return AuditEvent(id=30, type=kind, created_at=datetime(2026, 11, 23, 1, 13, tzinfo=UTC), **given)


def body_of(provider, kind="feature-created", tags=(), **parameters):
    request = PROVIDERS[provider].make_request(
        {"url": "https://a.example/"} | parameters, Message(event(kind), list(tags))
    )
    assert not request.errors
    return request.headers, json.loads(request.bodies[""])


def test_bodies():
    headers, body = body_of("webhook", authorization="secret-auth", customHeaders='{"X-One": "1"}')
    assert headers == {"Content-Type": "application/json", "Authorization": "secret-auth", "X-One": "1"}
    assert (body["type"], body["featureName"], body["createdAt"]) == (
        "feature-created",
        "hook-flag",
        "2026-11-23T01:13:00.000Z",
    )
    headers, body = body_of(
        "datadog", apiKey="dd", sourceTypeName="unleash", tags=[{"type": "team", "value": "x"}]
    )
    assert headers["DD-API-KEY"] == "dd"
    assert body == {
        "text": f"%%% \n {CREATED} \n %%% ",
        "title": "flagadmin notification update",
        "tags": ["team:x"],
        "source_type_name": "unleash",
    }
    headers, body = body_of("new-relic", licenseKey="nr")
    assert (headers["Api-Key"], body["eventType"], body["createdAt"]) == (
        "nr",
        "UnleashServiceEvent",
        1795396380000,
    )
    _, body = body_of("teamsworkflow")
    card = body["attachments"][0]["content"]
    assert card["body"][0]["items"][1]["text"] == CREATED
    assert card["actions"][0]["url"] == f"{PAGE}/features/hook-flag/"


def test_people_have_their_full_names(people):
    people["admin"].name = "Aisha [Khan](https://evil.example)"
    people["admin"].save()
    message = Message(event(actor_id=people["admin"].pk))
    assert (message.document["createdBy"], message.document["createdByName"]) == (
        "admin",
        people["admin"].name,
    )
    assert message.markdown.startswith("*Aisha [Khan] (https://evil.example)* created")
    facts = PROVIDERS["teamsworkflow"].make_request({"url": "https://a.example/"}, message)
    assert b'"value":"Aisha [Khan] (https' in facts.bodies[""]


def test_a_template_with_the_event_as_a_string_and_as_a_sentence():
    template = '{"json":{{{eventJson}}},"markdown":"{{{eventMarkdown}}}","escaped":"{{event.createdBy}}"}'
    _, body = body_of("webhook", bodyTemplate=template)
    assert json.loads(body["json"])["featureName"] == "hook-flag"
    assert (body["markdown"], body["escaped"]) == (CREATED, "admin")


@pytest.mark.parametrize(
    "headers", ["{not json", "[]", "[" * 9_000, '{"a": 1}', '{"a b": "c"}', '{"a": "b\\nc"}']
)
def test_headers_that_cannot_be_sent_are_left_out(headers):
    parameters = {"url": "https://a.example/", "customHeaders": headers}
    request = PROVIDERS["webhook"].make_request(parameters, Message(event()))
    assert request.headers == {"Content-Type": "application/json"}
    assert request.errors


def test_a_changed_strategy_in_words():
    before = {"title": "half", "parameters": {"rollout": "50"}, "segments": [1], "constraints": [
        {"contextName": "country", "operator": "NOT_IN", "values": ["SE", "DK"], "inverted": True},
    ]}  # fmt: skip
    after = {"title": "three", "parameters": {"rollout": "75"}, "constraints": [
        {"contextName": "n", "operator": "NUM_GT", "value": "5", "values": []},
    ]}  # fmt: skip
    changed = event("feature-strategy-update", environment="production", before=before, after=after)
    assert markdown(changed).partition("by updating ")[2] == (
        "strategy *half* in *production* rollout from 50% to 75%; constraints from [country not is not one of (SE,DK)]"
        " to [n is a number greater than 5]; segments from (1) to empty set of segments"
    )


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{a}} {{{a}}} {{&a}}", "&lt;b&gt; <b> <b>"),
        ("{{#list}}{{name}},{{/list}}{{^list}}none{{/list}}", "x,y,"),
        ("{{#empty}}no{{/empty}}{{^empty}}none{{/empty}}{{! comment }}", "none"),
        ("{{#map}}{{name}}{{a}}{{/map}} {{map.name}} {{map.gone.deep}}|{{gone}}", "z&lt;b&gt; z |"),
        ("{{#words}}{{.}} {{/words}}{{number}} {{yes}} {{{map}}}", 'one two 1.5 true {"name":"z"}'),
    ],
)
def test_mustache(template, text):
    lists = {"list": [{"name": "x"}, {"name": "y"}], "empty": [], "words": ["one", "two"]}
    assert render(template, {"a": "<b>", "map": {"name": "z"}, "number": 1.5, "yes": True, **lists}) == text


@pytest.mark.parametrize(
    "template",
    [
        "{{#a}}",
        "{{/a}}",
        "{{#a}}{{/b}}",
        "{{#a}}" * 30 + "{{/a}}" * 30,
        "{{#n}}" * 5 + "{{/n}}" * 5,
        "{{#n}}{{a}}{{/n}}",
    ],
)
def test_templates_that_are_not_valid(template):
    with pytest.raises(TemplateError):
        render(template, {"n": list(range(1000)), "a": "x" * 1000})

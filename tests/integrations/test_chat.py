"""What Slack and people get, and what their receivers' answers mean."""

import json

import pytest
from django.core import mail

from integrations.deliveries.connections import Connection
from integrations.models import Delivery
from projects.flags.actions import NewFlag, change_tags, create_flag
from projects.models import FlagTag, TagType
from projects.segments.actions import create_segment
from tests.support.receiver import LOOPBACK, deliver, later, make_integration, receiver

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db(transaction=True)
State = Delivery.State


@pytest.fixture
def slack(receiver, monkeypatch):
    monkeypatch.setattr("integrations.providers.slack.SLACK_URL", f"{receiver.url}/slack")
    monkeypatch.setattr("flagadmin.core.server.background_tasks.public_url", "https://flags.example.com")
    return receiver


def slack_app(**parameters):
    return make_integration(
        "", provider="slack-app", secrets={"url": None, "accessToken": "xoxb-1"}, parameters=parameters
    )


def test_an_app_posts_to_the_channels_of_the_flag_or_the_default_ones(slack, shop, callers):
    integration = slack_app(defaultChannels="general, ,releases")
    flag = create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    first, second = (request.json() for request in slack.got)
    assert (first["channel"], second["channel"]) == ("general", "releases")
    assert first["text"].endswith("in project *<https://flags.example.com/projects/shop/|shop>*")
    assert [button["text"]["text"] for button in first["blocks"][1]["elements"]] == [
        "Flag",
        "Who changes",
        "Undo…",
    ]
    assert slack.got[0].headers["authorization"] == "Bearer xoxb-1"
    TagType.objects.get_or_create(name="slack")
    FlagTag.objects.create(flag=flag, tag_type_id="slack", value="checkout")
    delivery = integration.deliveries.get()
    assert (delivery.state, delivery.details["arrived"]) == (State.SUCCESS, ["general", "releases"])


@pytest.mark.parametrize(
    "text", ["[Log in](https://evil.example)", "a\n*admin* enabled cart", "a\u2028b\r\nc"]
)
def test_texts_of_users_make_no_links_and_no_lines(slack, shop, callers, text):
    make_integration(f"{slack.url}/slack", provider="slack", events=["segment-created", "feature-tagged"])
    make_integration(
        f"{slack.url}/teams", provider="teamsworkflow", events=["segment-created", "feature-tagged"]
    )
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    create_segment({"name": text, "constraints": []}, caller=callers("admin"))
    change_tags("cart", [("simple", text)], caller=callers("admin"))
    deliver()
    texts = [request.json()["text"] for request in slack.at("/slack")]
    cards = [
        request.json()["attachments"][0]["content"]["body"][0]["items"] for request in slack.at("/teams")
    ]
    written = [*texts, *(items[1]["text"] for items in cards)]
    assert len(written) == 4
    for message in written:
        assert "https://evil.example|" not in message
        assert "](https://evil.example)" not in message
        assert len(message.splitlines()) == 1


def test_a_bracket_in_a_text_leaves_the_next_link_alone(slack, shop, callers):
    make_integration(f"{slack.url}/slack", provider="slack", events=["feature-tagged"])
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    change_tags("cart", [("simple", "[x")], caller=callers("admin"))
    deliver()
    [message] = [request.json()["text"] for request in slack.at("/slack")]
    assert "with *simple:[x* in project *<" in message


def test_a_channel_that_has_it_does_not_get_it_again(slack, shop, callers):
    integration = slack_app(defaultChannels="a,b,c")
    slack.answer = lambda path, count: (503 if count == 1 else 200, {}, b'{"ok":true}')
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    later(integration)
    deliver()
    assert [request.json()["channel"] for request in slack.got] == ["a", "b", "b", "c"]
    assert integration.deliveries.get().state == State.SUCCESS


class ForOneRequest(Connection):
    """The turn is over after it."""

    def post(self, *arguments):
        self.until = 0.0
        return super().post(*arguments)


def test_channels_that_a_turn_has_no_time_for_follow_in_the_next(slack, shop, callers, monkeypatch):
    """A turn that outlasted its claim would let another server send the same."""
    integration = slack_app(defaultChannels="a,b,c")
    slack.answer = lambda path, count: (200, {}, b'{"ok":true}')
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    monkeypatch.setattr("integrations.deliveries.sender.Connection", ForOneRequest)
    states = []
    for _ in range(3):
        deliver()
        states.append(integration.deliveries.get().state)
    assert [request.json()["channel"] for request in slack.got] == ["a", "b", "c"]
    assert states == [State.PENDING, State.PENDING, State.SUCCESS]


def test_a_channel_that_is_refused_keeps_no_other_from_getting_it(slack, shop, callers):
    integration = slack_app(defaultChannels="gone,a,b")
    refusal = b'{"ok": false, "error": "channel_not_found"}'
    slack.answer = lambda path, count: (200, {}, refusal if count == 0 else b'{"ok": true}')
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    assert [request.json()["channel"] for request in slack.got] == ["gone", "a", "b"]
    delivery = integration.deliveries.get()
    assert (delivery.state, delivery.details["arrived"]) == (State.WITH_ERRORS, ["a", "b"])
    assert "gone: Slack refused it: channel_not_found." in delivery.state_details
    slack.answer = lambda path, count: (200, {}, refusal)
    create_flag("shop", NewFlag(name="other"), caller=callers("admin"))
    deliver()
    delivery = integration.deliveries.latest("id")
    assert delivery.state == State.FAILED
    assert delivery.state_details.startswith("gone: Slack refused it: channel_not_found. a: Slack")


def test_an_error_that_slack_answers_with_200_is_one(slack, shop, callers):
    slack.answer = lambda path, count: (200, {}, b'{"ok": false, "error": "channel_not_found"}')
    integration, nowhere = slack_app(defaultChannels="a"), slack_app()
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    failed = integration.deliveries.get()
    assert (failed.state, failed.state_details) == (State.FAILED, "Slack refused it: channel_not_found.")
    assert "no channel" in nowhere.deliveries.get().state_details


@pytest.mark.parametrize("error", ["internal_error", "service_unavailable", "ratelimited"])
def test_an_error_of_slack_that_passes_is_tried_again(slack, shop, callers, error):
    slack.answer = lambda path, count: (
        200,
        {},
        b'{"ok": true}' if count else b'{"ok": false, "error": "%b"}' % error.encode(),
    )
    integration = slack_app(defaultChannels="a")
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    waiting = integration.deliveries.get()
    assert (waiting.state, waiting.state_details) == (State.PENDING, f"Slack refused it: {error}.")
    later(integration)
    deliver()
    assert integration.deliveries.get().state == State.SUCCESS


def test_an_incoming_webhook(slack, shop, callers):
    make_integration(f"{slack.url}/hook", provider="slack", parameters={"emojiIcon": ":flag:"})
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    body = slack.got[0].json()
    assert body["icon_emoji"] == ":flag:"
    assert "channel" not in body


def test_an_e_mail_has_the_same_id_each_time(settings, shop, callers, monkeypatch):
    settings.EMAIL_HOST, settings.INTEGRATION_NETWORKS = "smtp.example.org", LOOPBACK
    monkeypatch.setattr("flagadmin.core.server.background_tasks.public_url", "https://flags.example.com")
    parameters = {"recipients": "a@example.org, b@example.org", "subjectPrefix": "[shop]"}
    integration = make_integration("", provider="email", parameters=parameters, secrets={"url": None})
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    Delivery.objects.update(state=State.PENDING)
    later(integration)
    deliver()
    first, again = mail.outbox
    assert first.to == ["a@example.org", "b@example.org"]
    assert first.subject == "[shop] admin created cart in project shop"
    assert "Flag: https://flags.example.com/projects/shop/features/cart/" in first.body
    assert first.extra_headers["Message-ID"] == again.extra_headers["Message-ID"]


def test_without_a_mail_server_it_says_so(settings, shop, callers):
    settings.EMAIL_HOST = ""
    integration = make_integration(
        "", provider="email", parameters={"recipients": "a@example.org"}, secrets={"url": None}
    )
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    deliver()
    assert "FLAGADMIN_SMTP_URL" in integration.deliveries.get().state_details


@pytest.mark.parametrize(
    ("provider", "parameters", "says"),
    [
        ("email", {"recipients": "a@example.org, nobody"}, "nobody is not an email address"),
        ("email", {"recipients": ","}, "must be 1 to 20 addresses"),
        ("slack-app", {"defaultChannels": "a"}, "Missing required parameters: accessToken"),
        ("slack-app", {"accessToken": "xoxb-1\n"}, "printable ASCII"),
    ],
)
def test_what_is_refused(api, provider, parameters, says):
    body = {"provider": provider, "parameters": parameters}
    refused = api["editor"].post("/api/admin/addons", body)
    assert refused.status_code == 400
    assert says in json.dumps(refused.json())

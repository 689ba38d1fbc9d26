"""The calls of docs/integrations.md work, one after the other, and its settings of Alertmanager are what ours accepts."""

import json
from pathlib import Path
from typing import Any

import yaml

from integrations.deliveries.attempts import make_test_event
from integrations.messages.message import Message
from integrations.models import Delivery, Integration, SignalRule, SignalSource
from integrations.providers import PROVIDERS
from projects.flags.actions import NewFlag, create_flag
from tests.documentation.blocks import blocks
from tests.support.cast import make_project

BLOCKS = blocks("docs/integrations.md")


def test_its_calls_work_one_after_the_other(api: Any, callers: Any, db: Any) -> None:
    make_project("checkout")
    create_flag("checkout", NewFlag(name="new-checkout"), caller=callers("admin"))
    for block in BLOCKS:
        if block.language != "http":
            continue
        head, _, body = _with_ids(block.text).partition("\n\n")
        method, path, *_ = head.split()
        data = json.loads(body) if body else None
        answer = getattr(api["admin"], method.lower())(path, data)
        assert answer.status_code in (200, 201, 202), answer.content
    first, on_call = Integration.objects.order_by("id")
    assert len(first.secrets()["keys"]) == 1
    _check_alert(on_call)
    assert Delivery.objects.get().event_id is None
    assert answer.json()["items"][0]["meets"]


def test_its_settings_of_alertmanager_are_yaml() -> None:
    [text] = [block.text for block in BLOCKS if block.language == "yaml"]
    [webhook] = yaml.safe_load(text)["receivers"][0]["webhook_configs"]
    assert webhook["url"].endswith("/api/signals/prometheus")


def test_it_says_what_each_provider_sends() -> None:
    text = Path("docs/integrations.md").read_text()
    assert [name for name in PROVIDERS if f"| `{name}` |" not in text] == []


def _with_ids(text: str) -> str:
    """The rows of a test have other numbers than those of a new installation."""
    for path, rows in (("addons", Integration), ("signals", SignalSource), ("rules", SignalRule)):
        if row := rows.objects.order_by("id").first():
            text = text.replace(f"{path}/1", f"{path}/{row.pk}")
    return text


def _check_alert(integration: Integration) -> None:
    parameters = integration.parameters | integration.secrets()["parameters"]
    request = PROVIDERS["webhook"].make_request(parameters, Message(make_test_event()))
    body = json.loads(request.bodies[""])
    assert body["payload"]["summary"] == "flagadmin: integration-test "
    assert json.loads(body["payload"]["custom_details"])["type"] == "integration-test"
